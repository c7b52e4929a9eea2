'use strict'

// The keys of a span's attributes in the order in which they were set, shared by all spans that set the same ones: what V8 calls
// a hidden class. An application sets its keys in one order with each request. So the next key is looked up in one place,
// where it is found to be sound and new to the span, without asking either again; and the encoder has its bytes.
//
//   EMPTY -- user.id -- user.plan -- cart.size        the usual way
//                  \--- cart.size                     another route's

const { SERVER_KEYS } = require('./http-info')

// Keys may be made of anything. What does not fit goes without a shape.
const SHAPES_MAX = 1000
const KEY_LENGTH_MAX = 100

let shapeCount = 0

class AttributeShape {
  /**
   * @param {AttributeShape | null} before
   * @param {string} key well-formed, and none of those before
   * @param {number} length of the flat list that has this shape
   */
  constructor (before, key, length) {
    this.before = before
    this.key = key
    this.length = length
    this.hasServerKey = before !== null && (before.hasServerKey || SERVER_KEYS.has(key))
    this.usual = null // what came first behind it
    this.others = null
    this.template = null // the encoder's
  }

  /** @returns {AttributeShape | null} with one more key; null: it never came here. HOT */
  after (key) {
    const { usual } = this
    if (usual !== null && usual.key === key) return usual
    return this.others === null ? null : this.others.get(key) ?? null
  }

  /** The same where it may be new. It must be well-formed, and not among those that are there. */
  add (key) {
    const known = this.after(key)
    if (known !== null) return known
    if (shapeCount === SHAPES_MAX || key.length > KEY_LENGTH_MAX) return NO_SHAPE
    shapeCount++
    const shape = new AttributeShape(this, ownText(key), this.length + 2)
    if (this.usual === null) this.usual = shape
    else (this.others ??= new Map()).set(shape.key, shape)
    return shape
  }

  /** In order. */
  keys () {
    return this.before === null ? [] : [...this.before.keys(), this.key]
  }
}

/** As V8 keeps the names of properties: equal ones are the same, and none keeps a longer text alive of which it was a part. */
function ownText (text) {
  return Object.keys({ [text]: 0 })[0]
}

const EMPTY_SHAPE = new AttributeShape(null, '', 0)
// Of a list whose keys are not known by a shape: no list is that long.
const NO_SHAPE = new AttributeShape(null, '', -1)

module.exports = { EMPTY_SHAPE, NO_SHAPE, ownText }
