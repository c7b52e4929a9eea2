'use strict'

// Attributes as a flat list, [key, value, key, value, ...]. Values are what OTLP's AnyValue holds: strings, numbers, booleans,
// bytes, null, and arrays and maps of these. They are checked, copied and cut when they are set: nothing of the caller's is kept,
// and none of the caller's code runs when the span is written.
// https://opentelemetry.io/docs/specs/otel/common/#anyvalue

const { isProxy } = require('node:util/types')
const { attempt } = require('../runtime/report.js')
const { SERVER_KEYS } = require('./http-info.js')

// The specification has no limit for these; one attribute must not be a way round ours.
const MEMBERS_MAX = 1024 // of an array or a map
const TOTAL_MAX = 4096 // of all arrays and maps in one value
const DEPTH_MAX = 64
const KEY_LENGTH_MAX = 1024

// Keys may be made of anything: lists beyond these go without a shape.
const SHAPES_MAX = 1000
const SHAPE_KEY_LENGTH_MAX = 100

/**
 * Sets one attribute, replacing an earlier value of the same key.
 * @param {{ attributeCut (): void }} [owner] is called if a key or a value loses a part by a limit that is no option
 * @returns {boolean} false when it was refused: a bad key or value, or `countMax` attributes are there already
 */
function setAttribute (list, key, value, countMax, lengthMax, owner) {
  if (typeof key !== 'string' || key === '') return false
  const clean = cleanValue(value, lengthMax, owner)
  return clean !== undefined && setClean(list, key, clean, countMax, owner)
}

/** Sets each own property of `attributes`; returns how many were refused. Never throws. */
function setAttributes (list, attributes, countMax, lengthMax, owner) {
  let refused = 0
  for (const key of ownKeys(attributes)) {
    if (!setAttribute(list, key, read(attributes, key), countMax, lengthMax, owner)) refused++
  }
  return refused
}

/** Sets an attribute whose value is clean. */
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

/** Where a flat list has the key, or -1; `indexOf` would find values too. */
function indexOfKey (list, key) {
  for (let i = 0; i < list.length; i += 2) if (list[i] === key) return i
  return -1
}

const hasKey = (list, key) => indexOfKey(list, key) !== -1

/** The own keys of the caller's object, none where it has none or throws. */
function ownKeys (object) {
  try {
    return object !== null && typeof object === 'object' ? Object.keys(object) : []
  } catch {
    return []
  }
}

/** A property of the caller's object, undefined where it throws. */
function read (object, key) {
  try {
    return object?.[key]
  } catch {
    return undefined
  }
}

/** Whether the caller's value is an array. A revoked proxy, which throws when it is asked, may have been one. */
function isArray (value) {
  return attempt(() => Array.isArray(value)) ?? true
}

/** The elements of the caller's array; `otherwise` where it is none or throws. */
function elements (value, otherwise = []) {
  return attempt(() => Array.isArray(value) ? [...value] : undefined) ?? otherwise
}

/** A copy of the caller's object, without what throws. */
function copyOf (object) {
  const copy = {}
  for (const key of ownKeys(object)) setOwn(copy, key, read(object, key))
  return copy
}

/** The list as an object for the SDK's processors and exporters: a plain one, on which they may call `hasOwnProperty`. */
function toObject (list) {
  const object = {}
  for (let i = 0; i < list.length; i += 2) {
    const value = list[i + 1]
    setOwn(object, list[i], typeof value === 'string' ? value.toWellFormed() : value)
  }
  return object
}

/** Sets an own property, also where assignment would run a setter (`__proto__`) or throw, as with a frozen prototype. */
function setOwn (object, key, value) {
  if (key in object) Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  else object[key] = value
}

/** A value as it may be kept, with strings and bytes cut at `lengthMax`; undefined where it is no attribute value. */
function cleanValue (value, lengthMax, owner) {
  switch (typeof value) {
    case 'string': return cut(value, lengthMax)
    case 'number':
    case 'boolean': return value
    case 'object': return value === null ? null : cleanObject(value, lengthMax, owner)
    default: return undefined
  }
}

/** Cuts at `lengthMax` UTF-16 units, never through a pair, and mends lone surrogates. */
function cut (text, lengthMax) {
  if (text.length <= lengthMax) return text.toWellFormed()
  const last = text.charCodeAt(lengthMax - 1)
  const end = last >= 0xd800 && last <= 0xdbff ? lengthMax - 1 : lengthMax
  // A slice would keep the whole long text alive; the copy through a Buffer lets go of it.
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

  /** Undefined: not a value, or one that throws when it is read. */
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
      } else if (member !== undefined) { // a function, a Date: one of many, not worth the whole map
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

/** Whether it is a plain object: the own members of a Date or a Map do not say what it is. */
function isMap (value) {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

// The places of the keys of longer lists are kept, of so many in all.
const SEARCHED_MAX = 32
const PLACES_MAX = 32768

let shapeCount = 0
let placesLeft = PLACES_MAX

/**
 * The keys of a list in the order in which they were set, shared by all spans that set the same ones, like V8's hidden classes.
 * A key that is found behind the same keys as before is sound and new to the span, and the encoder has its bytes.
 *
 *     EMPTY -- user.id -- user.plan -- cart.size        the usual way
 *                    \--- cart.size                     another route's
 */
class AttributeShape {
  /** The key is well-formed, and none of those before; the length is that of the flat list that has this shape. */
  constructor (before, key, length) {
    this.key = key
    this.length = length
    this.hasServerKey = before !== null && (before.hasServerKey || SERVER_KEYS.has(key))
    this.usual = null // the first shape that came after it
    this.others = null // a Map of the others, by key
    this.template = null // the encoder's
    this.places = undefined // key -> its place, once it was asked for twice; null: asked for once, as while it was new
  }

  /** The shape with one more key, or null where that key never came here. HOT */
  after (key) {
    const { usual } = this
    if (usual !== null && usual.key === key) return usual
    return this.others === null ? null : this.others.get(key) ?? null
  }

  /** The same where the shape may be new. The key must be well-formed, and not among those that are there. */
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

  /** The shape of a list that has got one more. Where there is none, what is known of its places stays right. */
  grown (key, length) {
    if (this.length === length) return this.add(key)
    if (this.isOwn) this.places.set(key, length)
    return this
  }

  /** Where a list of this shape, or of none, has the key, or -1. A long list is not searched each time. */
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

  /** This one, or one of the list's own: its keys are not known by a shape. */
  ownOf (list) {
    if (this.isOwn) return this
    const own = new AttributeShape(null, '', -1)
    own.places = placesOf(list)
    return own
  }
}

/** The text as V8 keeps names of properties: equal ones are the same, and none keeps a longer text alive. */
function ownText (text) {
  return Object.keys({ [text]: 0 })[0]
}

function placesOf (list) {
  const places = new Map()
  for (let i = 0; i < list.length; i += 2) places.set(list[i], i)
  return places
}

const EMPTY_SHAPE = new AttributeShape(null, '', 0)
// Of a list whose keys are not known by a shape: no list is that long.
const NO_SHAPE = new AttributeShape(null, '', -1)

// What is read off an error, or whatever else was thrown. Every read is guarded: it may be any object.

const TYPE_LENGTH_MAX = 128
const MESSAGE_LENGTH_MAX = 4096
const STACK_LENGTH_MAX = 16384 // on an SDK's span, whose limits are unknown

// The error of a library's call -> the `error.type` of its span. A request that fails with the same error has the same type: a
// database's code is in fields that only the library's own table knows.
const typesByLibrary = new WeakMap()

function rememberErrorType (error, type) {
  if (error !== null && typeof error === 'object') typesByLibrary.set(error, type)
}

/** A low-cardinality identifier for `error.type`: that of a library's call, the error's code, else its name. */
function errorType (error) {
  const known = typesByLibrary.get(error)
  if (known !== undefined) return known
  const code = text(error, 'code')
  if (/^[A-Z][A-Z0-9_]{2,63}$/.test(code)) return code
  return sqlStateOf(error) || errorName(error)
}

/** A SQLSTATE of PostgreSQL, or ''. Only the server's errors have a severity; a socket's code may look like one (EPIPE). */
function sqlStateOf (error) {
  const code = text(error, 'code')
  return text(error, 'severity') !== '' && /^[0-9A-Z]{5}$/.test(code) ? code : ''
}

// The names of the language's own errors. A class that extends one and sets no name has inherited it, which says little.
const BUILT_IN = new Set(['Error', 'AggregateError', 'EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError'])

function errorName (error) {
  const name = text(error, 'name')
  if (name === '') return error === null ? 'null' : typeof error
  const isInherited = BUILT_IN.has(name) && attempt(() => Object.hasOwn(error, 'name')) === false
  return cut((isInherited && className(error)) || name, TYPE_LENGTH_MAX)
}

function className (error) { return text(read(error, 'constructor'), 'name') }

/** The `exception.type` of spans and of log records: the error's code, else its name. A number is no code: a DOMException's, a driver's. */
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

/** Part, path and rule of what Fastify's validation found, `body/age type`: what a validator writes itself may hold the value. */
function validationText (error, problems) {
  const part = text(error, 'validationContext') || 'request'
  // It throws for a path with a symbol, and a list that is a proxy.
  return attempt(() => problems.slice(0, PROBLEMS_MAX).map((problem) => problemText(part, problem)).join(', ')) ?? part
}

function problemText (part, problem) {
  const path = read(problem, 'path') // of other validators than ajv, which has `instancePath`
  const place = Array.isArray(path) ? `/${path.join('/')}` : text(problem, 'instancePath')
  const missing = text(read(problem, 'params'), 'missingProperty')
  const rule = text(problem, 'keyword') || text(problem, 'code') || text(problem, 'type')
  return `${part}${place}${missing === '' ? '' : `/${missing}`} ${rule}`.trim()
}

function text (object, key) {
  const value = read(object, key)
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** Such a list as the API's Exception, for an SDK's span: the error was read once, and its code need not run again. */
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
