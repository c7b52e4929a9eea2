'use strict'

// `omitAttributes`: attributes that never leave the process, in any span, event, link, log record or metric.
//
// Omitted attributes are not read from callers and URLs, and not encoded in the templates of routes and calls. Attributes that the
// application and libraries set are removed from each recorded span when it ends, before it is kept or sent. Metrics remove them
// when a series is created, logs when a record is written. The spans of an SDK never get them.

const { CallInfo, requestTarget } = require('../http/conventions.js')
const { patternsOf, isNamed } = require('../config/attribute-keys.js')
const { EMPTY_SHAPE, NO_SHAPE, copyOf, read, exceptionAttributes, exceptionOf } = require('../span/attributes.js')

const KEYS_MAX = 1000 // that are remembered: an application may create any number of keys

class Omission {
  #touched = new Map() // key -> whether it, or a member of its value, is omitted
  #isClear = new Map() // AttributeShape -> whether a list of that shape has no omitted keys

  /** @param {string[]} keys of the option */
  constructor (keys) {
    this.patterns = patternsOf(keys)
  }

  has (key) { return isNamed(this.patterns, key) }

  /** Whether the option names members of the value, such as `req.remoteAddress` for `req`. */
  #hasMembersOf (key) { return this.patterns.some(({ text }) => text[key.length] === '.' && text.startsWith(key)) }

  /** A flat list without the omitted attributes; the same list if it has none. */
  strip (list) {
    for (let i = 0; i < list.length; i += 2) if (this.#touches(list[i])) return this.#stripped(list)
    return list
  }

  #touches (key) {
    let isTouched = this.#touched.get(key)
    if (isTouched === undefined) {
      isTouched = this.has(key) || this.#hasMembersOf(key)
      if (this.#touched.size < KEYS_MAX) this.#touched.set(key, isTouched)
    }
    return isTouched
  }

  #stripped (list) {
    const left = []
    for (let i = 0; i < list.length; i += 2) if (!this.has(list[i])) left.push(list[i], this.stripValue(list[i], list[i + 1]))
    return left
  }

  /** An attribute's value without the omitted members of maps. */
  stripValue (key, value) {
    if (typeof value !== 'object' || value === null || !this.#hasMembersOf(key)) return value
    if (Array.isArray(value)) return value.map((item) => this.stripValue(key, item))
    return value instanceof Uint8Array ? value : this.stripObject(value, `${key}.`)
  }

  /** A copy of an object of attributes, or of members whose keys start with `prefix`. Other values are returned unchanged. */
  stripObject (attributes, prefix = '') {
    if (typeof attributes !== 'object' || attributes === null) return attributes
    const copy = copyOf(attributes)
    for (const key of Object.keys(copy)) {
      if (this.has(prefix + key)) delete copy[key]
      else copy[key] = this.stripValue(prefix + key, copy[key])
    }
    return copy
  }

  // ---- our own spans

  /** Removes omitted attributes from an ended span. HOT, once per recorded span. */
  stripSpan (span) {
    const { attributeList, attributeShape, details, info } = span
    if (attributeList !== null && !this.#knowsClear(attributeList, attributeShape)) this.#stripList(span, attributeList)
    if (details !== null) for (const part of [...details.events, ...details.links]) part.list = this.strip(part.list)
    if (info === undefined) {
      if (span.errorType !== '' && this.has('error.type')) span.errorType = ''
    } else if (info !== null) span.info = info.partOwner === this ? info.part : this.#makePart(info)
  }

  #knowsClear (list, shape) {
    if (shape.length !== list.length) return false
    const known = this.#isClear.get(shape)
    if (known !== undefined) return known
    const isClear = this.strip(list) === list
    this.#isClear.set(shape, isClear)
    return isClear
  }

  #stripList (span, all) {
    const list = this.strip(all)
    if (list === all) return
    span.attributeList = list.length === 0 ? null : list
    span.attributeShape = list.length === 0 ? EMPTY_SHAPE : NO_SHAPE
  }

  /** A CallInfo without the omitted attributes, cached on the original. */
  #makePart (info) {
    const { kind, name, attributeList, openKey } = info
    const list = this.strip(attributeList)
    const origin = this.has(openKey) ? '' : info.origin
    info.part = list === attributeList && origin === info.origin ? info : new CallInfo(kind, name, list, origin, openKey)
    if (info.part !== info) info.part.whole = info
    info.partOwner = this
    return info.part
  }

  // ---- spans of an SDK

  /** The API's SpanOptions. */
  stripOptions (options) {
    if (options === undefined) return options
    const { attributes, links = [] } = options
    return { ...options, attributes: this.stripObject(attributes), links: links.map((link) => ({ ...copyOf(link), attributes: this.stripObject(read(link, 'attributes')) })) }
  }

  stripException (exception) { return exceptionOf(this.strip(exceptionAttributes(exception))) }
}

/** An application's part. */
class OmitPart {
  #tracer

  constructor (tracer) {
    this.#tracer = tracer
    tracer.omit = new Omission(tracer.settings.omitAttributes)
  }

  /** Removes an omitted query from the request target. If the path is omitted too, the target is the route's path, which templates have. */
  follow (requests) {
    const { omit } = this.#tracer
    if (!omit.has('url.query')) return
    requests.targetOf = omit.has('url.path') ? (raw, route) => route.route : (raw) => withoutQuery(requestTarget(raw))
  }

  open () {
    const { omit, pipeline } = this.#tracer
    const { ended } = pipeline
    pipeline.shown = (list) => omit.strip(list)
    pipeline.ended = (span) => {
      omit.stripSpan(span)
      ended.call(pipeline, span)
    }
    if (omit.has('url.path') && !omit.has('url.query')) pipeline.templateUrlLengthMax = -1 // no template has a query without its path
  }
}

function withoutQuery (target) {
  const mark = target.indexOf('?')
  return mark === -1 ? target : target.slice(0, mark)
}

module.exports = { attach: (tracer) => new OmitPart(tracer), Omission }
