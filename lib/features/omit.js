'use strict'

// `omitAttributes`: attributes that leave the process in no span, event, link, log record or metric.
//
// Callers and URLs are read without what is omitted, and the templates of routes and calls are encoded without it. What the
// application and libraries set is taken out of each recorded span when it ends, before it is kept or sent. Metrics take it out
// where a series is made, logs where a record is written, and the spans of an SDK are not given it.

const { CallInfo, requestTarget } = require('../http/conventions.js')
const { patternsOf, isNamed } = require('../config/attribute-keys.js')
const { EMPTY_SHAPE, NO_SHAPE, copyOf, read, exceptionAttributes, exceptionOf } = require('../span/attributes.js')

const KEYS_MAX = 1000 // that are remembered: they may be made of anything

class Omission {
  #touched = new Map() // key -> whether there is something to take out of it
  #isClear = new Map() // AttributeShape -> whether a list of that shape has no such keys

  /** @param {string[]} keys of the option */
  constructor (keys) {
    this.patterns = patternsOf(keys)
  }

  has (key) { return isNamed(this.patterns, key) }

  /** Whether members of a value are named, as `req.remoteAddress` is of `req`. */
  #hasMembersOf (key) { return this.patterns.some(({ text }) => text[key.length] === '.' && text.startsWith(key)) }

  /** A flat list without what is omitted: the same one where it has no such keys. */
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

  /** What an attribute's value may say: named members of maps are left out. */
  stripValue (key, value) {
    if (typeof value !== 'object' || value === null || !this.#hasMembersOf(key)) return value
    if (Array.isArray(value)) return value.map((item) => this.stripValue(key, item))
    return value instanceof Uint8Array ? value : this.stripObject(value, `${key}.`)
  }

  /** A copy of an object of attributes, or of members behind `prefix`; anything else as it is. */
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

  /** Takes out what a span has that has ended. HOT, once per recorded span. */
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

  /** What is left of what calls have in common, kept with it. */
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

  /** A URL is cut where a span has no more of it: the route's path, of which templates are made, stands for one that is left out. */
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
