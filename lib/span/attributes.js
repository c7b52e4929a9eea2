'use strict'

// Attributes as a flat list, [key, value, key, value, ...]. A value is what OTLP's AnyValue holds: a string, number, boolean, bytes,
// null, or an array or map of these. Values are checked, copied and cut when they are set. So a span holds no object of the caller,
// and runs none of the caller's code when it is written.
// https://opentelemetry.io/docs/specs/otel/common/#anyvalue

const { isProxy } = require('node:util/types')
const { attempt } = require('../runtime/report.js')
const { SERVER_KEYS } = require('./http-info.js')

// The specification sets no limits for these. Without ours, one attribute could have any size.
const MEMBERS_MAX = 1024 // of one array or map
const TOTAL_MAX = 4096 // members of all arrays and maps in one value
const DEPTH_MAX = 64
const KEY_LENGTH_MAX = 1024

// An application may build keys from data. Beyond these limits, lists get no shape.
const SHAPES_MAX = 1000
const SHAPE_KEY_LENGTH_MAX = 100

/**
 * Sets one attribute and replaces an earlier value of the same key.
 * @param {{ attributeCut (): void }} [owner] is called if a limit that is not an option cuts a key or a value
 * @returns {boolean} false if it was refused: the key or value is invalid, or the list has `countMax` attributes already
 */
function setAttribute (list, key, value, countMax, lengthMax, owner) {
  if (typeof key !== 'string' || key === '') return false
  const clean = cleanValue(value, lengthMax, owner)
  return clean !== undefined && setClean(list, key, clean, countMax, owner)
}

/** Sets each own property of `attributes` and returns how many were refused. Never throws. */
function setAttributes (list, attributes, countMax, lengthMax, owner) {
  let refused = 0
  for (const key of ownKeys(attributes)) {
    if (!setAttribute(list, key, read(attributes, key), countMax, lengthMax, owner)) refused++
  }
  return refused
}

/** Sets an attribute whose value was cleaned before. */
function setClean (list, key, clean, countMax, owner) {
  const name = cutKey(key, owner)
  const place = indexOfKey(list, name)
  if (place !== -1) list[place + 1] = clean
  else if (list.length >= countMax * 2) return false
  else list.push(name, clean)
  return true
}

function cutKey (key, owner) {
  if (key.length > KEY_LENGTH_MAX) owner?.attributeCut()
  return cut(key, KEY_LENGTH_MAX)
}

/** The index of the key in a flat list, or -1. `indexOf` would find values too. */
function indexOfKey (list, key) {
  for (let i = 0; i < list.length; i += 2) if (list[i] === key) return i
  return -1
}

const hasKey = (list, key) => indexOfKey(list, key) !== -1

/** The own keys of the caller's object. Empty if it is not an object, or throws. */
function ownKeys (object) {
  try {
    return object !== null && typeof object === 'object' ? Object.keys(object) : []
  } catch {
    return []
  }
}

/** A property of the caller's object, or undefined if reading it throws. */
function read (object, key) {
  try {
    return object?.[key]
  } catch {
    return undefined
  }
}

/** Whether the caller's value is an array. A revoked proxy throws here; it may have been an array, so it counts as one. */
function isArray (value) {
  return attempt(() => Array.isArray(value)) ?? true
}

/** The elements of the caller's array, or `otherwise` if it is not an array or throws. */
function elements (value, otherwise = []) {
  return attempt(() => Array.isArray(value) ? [...value] : undefined) ?? otherwise
}

/** A copy of the caller's object. Properties that throw are undefined. */
function copyOf (object) {
  const copy = {}
  for (const key of ownKeys(object)) setOwn(copy, key, read(object, key))
  return copy
}

/** The list as an object for the SDK's processors and exporters. It has a prototype, because they may call `hasOwnProperty`. */
function toObject (list) {
  const object = {}
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1]
    setOwn(object, list[i], typeof value === 'string' ? value.toWellFormed() : value)
  }
  return object
}

/** Sets an own property even where assignment would run a setter (`__proto__`) or throw (a frozen prototype). */
function setOwn (object, key, value) {
  if (key in object) Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}

/** A copy of the value that is safe to keep, with strings and bytes cut at `lengthMax`. Undefined if it is not an attribute value. */
function cleanValue (value, lengthMax, owner) {
  switch (typeof value) {
    case 'string': return cut(value, lengthMax)
    case 'number':
    case 'boolean': return value
    case 'object': return value === null ? null : cleanObject(value, lengthMax, owner)
    default: return undefined
  }
}

/** Cuts at `lengthMax` UTF-16 units, never inside a surrogate pair, and replaces lone surrogates. */
function cut (text, lengthMax) {
  if (text.length <= lengthMax) return text.toWellFormed()
  const last = text.charCodeAt(lengthMax - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? lengthMax - 1 : lengthMax
  // A slice would keep the whole text alive. A copy through a Buffer does not.
  return Buffer.from(text.slice(0, end).toWellFormed()).toString()
}

function cleanObject (value, lengthMax, owner) {
  const cleaner = new Cleaner(lengthMax)
  const clean = cleaner.object(value, 1)
  if (cleaner.isCut && clean !== undefined) owner?.attributeCut()
  return clean
}

class Cleaner {
  left = TOTAL_MAX
  isCut = false

  constructor (lengthMax) {
    this.lengthMax = lengthMax
  }

  /** Returns undefined if it is not an attribute value, or throws when it is read. */
  object (value, depth) {
    if (isProxy(value)) return undefined // its traps are the caller's code
    try {
      if (Array.isArray(value)) return this.array(value, depth)
      if (value instanceof Uint8Array) return this.bytes(value)
      return isMap(value) ? this.map(value, depth) : undefined
    } catch {
      return undefined
    }
  }

  array (value, depth) {
    const clean = []
    for (let i = 0; i < value.length && this.hasRoom(i); i++) {
      const element = value[i]
      const kept = element === undefined ? null : this.member(element, depth)
      if (kept === undefined) return undefined
      clean.push(kept)
    }
    return clean
  }

  map (value, depth) {
    const clean = {}
    let count = 0
    for (const key of Object.keys(value)) {
      if (!this.hasRoom(count)) break
      const member = value[key]
      const kept = this.member(member, depth)
      if (kept !== undefined) {
        if (key.length > KEY_LENGTH_MAX) this.isCut = true
        setOwn(clean, cut(key, KEY_LENGTH_MAX), kept)
        count++
      } else if (member !== undefined) { // a function or a Date: drop this member, keep the map
        this.isCut = true
      }
    }
    return clean
  }

  bytes ({ buffer, byteOffset, length }) {
    return new Uint8Array(buffer, byteOffset, Math.min(length, this.lengthMax)).slice()
  }

  member (value, depth) {
    if (typeof value !== 'object' || value === null) return cleanValue(value, this.lengthMax)
    if (depth < DEPTH_MAX) return this.object(value, depth + 1)
    this.isCut = true
    return null
  }

  hasRoom (count) {
    if (count < MEMBERS_MAX && this.left-- > 0) return true
    this.isCut = true
    return false
  }
}

/** Whether it is a plain object. The own properties of a Date or a Map do not describe it. */
function isMap (value) {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

const SEARCHED_MAX = 32 // array length; the key positions of longer lists are cached in a Map
const PLACES_MAX = 32768 // total budget of the cached positions, in array elements

let shapeCount = 0
let placesLeft = PLACES_MAX

/**
 * The keys of a list in the order in which they were set. All spans that set the same keys share it, like V8's hidden classes.
 * If a shape already has a key as its successor, the key is valid, the list does not contain it yet, and the encoder has its bytes.
 *
 *     EMPTY -- user.id -- user.plan -- cart.size        the usual order
 *                    \--- cart.size                     another route's order
 */
class AttributeShape {
  /** The key must be well-formed and not among the keys before it. `length` is the length of the flat list with this shape. */
  constructor (before, key, length) {
    this.key = key
    this.length = length
    this.hasServerKey = before !== null && (before.hasServerKey || SERVER_KEYS.has(key))
    this.usual = null // the first successor
    this.others = null // the other successors: a Map by key
    this.template = null // belongs to the encoder
    this.places = undefined // a Map from key to index, built at the second lookup; null after the first lookup
  }

  /** The shape with one more key, or null if no list has added this key here before. HOT */
  after (key) {
    const { usual } = this
    if (usual !== null && usual.key === key) return usual
    return this.others === null ? null : this.others.get(key) ?? null
  }

  /** Like `after`, but creates the shape if it is new. The key must be well-formed and not in the list yet. */
  add (key) {
    const known = this.after(key)
    if (known !== null) return known
    if (shapeCount === SHAPES_MAX || key.length > SHAPE_KEY_LENGTH_MAX) return NO_SHAPE
    shapeCount++
    const shape = new AttributeShape(this, ownText(key), this.length + 2)
    if (this.usual === null) this.usual = shape
    else (this.others ??= new Map()).set(shape.key, shape)
    return shape
  }

  /** The shape of a list after one more key. If this shape does not match the list, the list keeps it; its own positions are updated. */
  grown (key, length) {
    if (this.length === length) return this.add(key)
    if (this.isOwn) this.places.set(key, length)
    return this
  }

  /** The index of the key in a list, or -1. Long lists are looked up in the cached positions instead of searched each time. */
  placeIn (list, key) {
    if (list.length <= SEARCHED_MAX) return indexOfKey(list, key)
    if (this.places === undefined) this.places = null
    else if (this.places === null && placesLeft >= list.length) {
      placesLeft -= list.length
      this.places = placesOf(list)
    }
    return this.places === null ? indexOfKey(list, key) : this.places.get(key) ?? -1
  }

  get isOwn () { return this.length === -1 && this.places }

  /** A shape that belongs to this list alone, for a list whose keys no shared shape describes. */
  ownOf (list) {
    if (this.isOwn) return this
    const own = new AttributeShape(null, '', -1)
    own.places = placesOf(list)
    return own
  }
}

/** The text as V8 stores property names: equal texts are one string, and it does not keep a longer string alive. */
function ownText (text) {
  return Object.keys({ [text]: 0 })[0]
}

function placesOf (list) {
  const places = new Map()
  for (let i = 0; i < list.length; i += 2) places.set(list[i], i)
  return places
}

const EMPTY_SHAPE = new AttributeShape(null, '', 0)
// For a list whose keys no shape describes. No list has length -1, so this shape never matches.
const NO_SHAPE = new AttributeShape(null, '', -1)

// Reads errors. Any value can be thrown, so every read is guarded.

const TYPE_LENGTH_MAX = 128
const MESSAGE_LENGTH_MAX = 4096
const STACK_LENGTH_MAX = 16384 // for an SDK's span, whose limits are unknown

// Maps the error of a library's call to the `error.type` of its span. A request that fails with this error gets the same type, because
// only the library's own table knows which field holds a database's code.
const typesByLibrary = new WeakMap()

function rememberErrorType (error, type) {
  if (error !== null && typeof error === 'object') typesByLibrary.set(error, type)
}

/** A low-cardinality identifier for `error.type`: the type remembered from a library's call, else the error's code, else its name. */
function errorType (error) {
  const known = typesByLibrary.get(error)
  if (known !== undefined) return known
  const code = text(error, 'code')
  if (/^[A-Z][A-Z0-9_]{2,63}$/.test(code)) return code
  return sqlStateOf(error) || errorName(error)
}

/** The SQLSTATE of a PostgreSQL error, or ''. Only errors of the server have a severity. A socket's code can look like a SQLSTATE (EPIPE). */
function sqlStateOf (error) {
  const code = text(error, 'code')
  return text(error, 'severity') !== '' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

// The names of JavaScript's own errors. A subclass that sets no name inherits one of these, so its class name is more useful.
const BUILT_IN = new Set(['Error', 'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'])

function errorName (error) {
  const name = text(error, 'name')
  if (name === '') return error === null ? 'null' : typeof error
  const isInherited = BUILT_IN.has(name) && attempt(() => Object.hasOwn(error, 'name')) === false
  return cut((isInherited && className(error)) || name, TYPE_LENGTH_MAX)
}

function className (error) { return text(read(error, 'constructor'), 'name') }

/** The `exception.type` of spans and log records: the error's code, else its name. Numeric codes (DOMException, some drivers) are ignored. */
function exceptionType (error) {
  const code = read(error, 'code')
  return (typeof code === 'string' && cut(code, TYPE_LENGTH_MAX)) || errorName(error)
}

/** The attributes of an `exception` event, as a flat list. */
function exceptionAttributes (error, lengthMax = STACK_LENGTH_MAX) {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return ['exception.type', errorName(error), 'exception.message', cut(String(error), Math.min(lengthMax, MESSAGE_LENGTH_MAX))]
  }
  const list = ['exception.type', exceptionType(error)]
  const problems = read(error, 'validation')
  if (isArray(problems)) return [...list, 'exception.message', cut(validationText(error, problems), Math.min(lengthMax, MESSAGE_LENGTH_MAX))]
  const message = text(error, 'message')
  if (message !== '') list.push('exception.message', cut(message, Math.min(lengthMax, MESSAGE_LENGTH_MAX)))
  const stack = text(error, 'stack')
  if (stack !== '') list.push('exception.stacktrace', cut(stack, lengthMax))
  return list
}

const PROBLEMS_MAX = 4

/** The part, path and rule of each error of Fastify's validation: `body/age type`. A validator's own message may contain the value. */
function validationText (error, problems) {
  const part = text(error, 'validationContext') || 'request'
  // Throws if a path contains a symbol, or if the list is a proxy that throws.
  return attempt(() => problems.slice(0, PROBLEMS_MAX).map((problem) => problemText(part, problem)).join(', ')) ?? part
}

function problemText (part, problem) {
  const path = read(problem, 'path') // set by validators other than ajv, which sets `instancePath`
  const place = Array.isArray(path) ? `/${path.join('/')}` : text(problem, 'instancePath')
  const missing = text(read(problem, 'params'), 'missingProperty')
  const rule = text(problem, 'keyword') || text(problem, 'code') || text(problem, 'type')
  return `${part}${place}${missing === '' ? '' : `/${missing}`} ${rule}`.trim()
}

function text (object, key) {
  const value = read(object, key)
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** The attributes as the API's Exception, for an SDK's span. The error is not read again, because that would run its getters again. */
function exceptionOf (list) {
  const values = toObject(list)
  return { name: values['exception.type'], message: values['exception.message'] ?? '', stack: values['exception.stacktrace'] }
}

module.exports = {
  setAttribute,
  setAttributes,
  setClean,
  indexOfKey,
  hasKey,
  ownKeys,
  read,
  isArray,
  elements,
  copyOf,
  toObject,
  setOwn,
  cleanValue,
  cut,
  cutKey,
  EMPTY_SHAPE,
  NO_SHAPE,
  SEARCHED_MAX,
  ownText,
  errorType,
  sqlStateOf,
  rememberErrorType,
  className,
  exceptionType,
  exceptionAttributes,
  exceptionOf
}
