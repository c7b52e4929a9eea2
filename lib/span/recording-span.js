'use strict'

// A span that records. It implements the API's Span and the SDK's ReadableSpan on its prototype: ids are
// words until somebody asks for hex, attributes a flat list until somebody asks for an object.
//
// What few spans have (events, links, a status, another name, losses) hangs under `details`, made when
// first needed: the usual span is one object.

const { TraceContext, stateOf, PARENT_NONE, PARENT_REMOTE, SAMPLED } = require('../context/trace-context')
const { hex } = require('../context/ids')
const { now, toHrTime, fromTimeInput } = require('./clock')
const { setAttributes, setClean, ownKeys, read, cleanValue, cut, toObject } = require('./attributes')
const { EMPTY_SHAPE } = require('./attribute-shape')
const { exceptionAttributes } = require('./exception')
const { linkedContext, attributesOf } = require('./link')

const STATUS_UNSET = 0
const STATUS_OK = 1
const STATUS_ERROR = 2

const OPEN = -1

// More than a span has of its own beside those that are set.
const OWN_MAX = 32

// Of names and descriptions, for which the specification has no limit: megabytes would cost the span.
const TEXT_LENGTH_MAX = 16384

class SpanDetails {
  constructor () {
    this.name = ''
    this.tracestate = null // what is exported in place of the span's, where it is known only at its end
    this.statusCode = STATUS_UNSET
    this.statusMessage = ''
    this.events = []
    this.links = []
    this.droppedAttributes = 0
    this.droppedEvents = 0
    this.droppedLinks = 0
  }
}

/** Of the attributes of one event or link. */
class Losses {
  constructor (pipeline) {
    this.pipeline = pipeline
    this.count = 0
  }

  attributeCut () {
    this.count++
    this.pipeline.attributeCut()
  }
}

class RecordingSpan extends TraceContext {
  /**
   * @param {Pipeline} pipeline where the span goes when it ends, with limits, resource and scope
   * @param {number} start milliseconds on the monotonic clock
   */
  constructor (pipeline, start) {
    super()
    this.p0 = 0
    this.p1 = 0
    this.parentKind = PARENT_NONE
    this.pipeline = pipeline
    this.start = start
    this.endedAt = OPEN
    this.attributeList = null
    this.attributeShape = EMPTY_SHAPE // its keys, as long as its length is the list's
    this.roomyLength = 0 // of the list, up to which the limit need not be counted
    this.details = null
    this.localRoot = null // the request's span, while it holds children back (see `keep`)
  }

  // ---- the API's Span

  isRecording () {
    return this.endedAt === OPEN
  }

  setAttribute (key, value) {
    if (this.endedAt === OPEN) this.assign(key, value)
    return this
  }

  setAttributes (attributes) {
    if (this.endedAt !== OPEN) return this
    for (const key of ownKeys(attributes)) this.assign(key, read(attributes, key))
    return this
  }

  addEvent (name, attributesOrTime, time) {
    if (this.endedAt !== OPEN) return this
    const withAttributes = isAttributes(attributesOrTime)
    this.recordEvent(textOf(name), withAttributes ? attributesOrTime : undefined, withAttributes ? time : attributesOrTime)
    return this
  }

  addLink (link) {
    if (this.endedAt !== OPEN) return this
    const details = this.detail()
    const { links, attributesPerLink, attributeValueLength } = this.pipeline.limits
    const context = details.links.length >= links ? undefined : linkedContext(link)
    if (context === undefined) {
      details.droppedLinks++
      return this
    }
    const list = []
    const losses = new Losses(this.pipeline)
    losses.count += setAttributes(list, attributesOf(link), attributesPerLink, attributeValueLength, losses)
    details.links.push({ context, list, droppedAttributesCount: losses.count })
    return this
  }

  addLinks (links) {
    if (Array.isArray(links)) for (const link of links) this.addLink(link)
    return this
  }

  setStatus (status) {
    if (this.endedAt !== OPEN || status === null || typeof status !== 'object') return this
    const { code, message } = readStatus(status)
    if (code !== STATUS_OK && code !== STATUS_ERROR) return this
    const details = this.detail()
    if (details.statusCode === STATUS_OK) return this // Ok is final
    details.statusCode = code
    // A description belongs to errors only.
    details.statusMessage = code === STATUS_ERROR && typeof message === 'string' ? cut(message, TEXT_LENGTH_MAX) : ''
    return this
  }

  updateName (name) {
    if (this.endedAt === OPEN && typeof name === 'string') this.detail().name = cut(name, TEXT_LENGTH_MAX)
    return this
  }

  recordException (exception, time) {
    if (this.endedAt !== OPEN) return
    const { attributeValueLength } = this.pipeline.limits
    this.pushEvent('exception', exceptionAttributes(exception, attributeValueLength), 0, fromTimeInput(time, now()))
  }

  end (endTime) {
    if (this.endedAt !== OPEN) return
    this.finish(endTime === undefined ? now() : fromTimeInput(endTime, now()))
  }

  // ---- the SDK's ReadableSpan

  get ended () { return this.endedAt !== OPEN }
  get startTime () { return toHrTime(this.start) }
  get endTime () { return this.endedAt === OPEN ? [0, 0] : toHrTime(this.endedAt) }
  get duration () {
    if (this.endedAt === OPEN) return [0, 0]
    const nanos = Math.round((this.endedAt - this.start) * 1e6)
    return [Math.floor(nanos / 1e9), nanos % 1e9]
  }

  get parentSpanContext () {
    if (this.parentKind === PARENT_NONE) return undefined
    const context = this.spanContext()
    context.spanId = this.parentSpanId
    if (this.parentKind === PARENT_REMOTE) context.isRemote = true
    return context
  }

  get parentSpanId () { return this.parentKind === PARENT_NONE ? undefined : hex(this.p0) + hex(this.p1) }
  get attributes () { return toObject(this.allAttributes()) }
  get status () {
    const { details } = this
    if (details === null) return { code: STATUS_UNSET }
    return details.statusMessage === '' ? { code: details.statusCode } : { code: details.statusCode, message: details.statusMessage }
  }

  get events () {
    return this.details === null
      ? []
      : this.details.events.map(({ name, time, list, droppedAttributesCount }) =>
        ({ name, time: toHrTime(time), attributes: toObject(list), droppedAttributesCount }))
  }

  get links () {
    return this.details === null
      ? []
      : this.details.links.map(({ context, list, droppedAttributesCount }) => ({ context, attributes: toObject(list), droppedAttributesCount }))
  }

  get resource () { return this.pipeline.resource }
  get instrumentationScope () { return this.scope }
  get droppedAttributesCount () { return this.details === null ? 0 : this.details.droppedAttributes }
  get droppedEventsCount () { return this.details === null ? 0 : this.details.droppedEvents }
  get droppedLinksCount () { return this.details === null ? 0 : this.details.droppedLinks }

  // ---- ours

  /** Sets one attribute, or counts it as dropped. HOT, once per attribute. */
  assign (key, value) {
    const { attributeList: list, attributeShape: { usual } } = this
    // The key that came here before is sound and new to the span. There is a list: while there is none, it has no room.
    if (usual !== null && usual.key === key && usual.length <= this.roomyLength && usual.length === list.length + 2 &&
      this.isClean(value)) {
      list.push(key, value)
      this.attributeShape = usual
    } else {
      this.assignAny(key, value)
    }
  }

  /** Whether it can be kept as it is. A lone surrogate is mended where it is read or written: to look for one costs a call each. */
  isClean (value) {
    if (typeof value === 'string') return value.length <= this.pipeline.limits.attributeValueLength
    return typeof value === 'number' || typeof value === 'boolean'
  }

  assignAny (key, value) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    const clean = typeof key !== 'string' || key === '' ? undefined : cleanValue(value, attributeValueLength, this)
    if (clean === undefined) {
      this.detail().droppedAttributes++
      return
    }
    // Not before: to read a value may run code that sets another.
    if (this.attributeList === null) {
      this.attributeList = []
      this.roomyLength = (attributes - this.ownCountMax) * 2
    }
    const { attributeList: list, attributeShape: shape } = this
    const { length } = list
    const isShaped = shape.length === length
    if (isShaped && length < this.roomyLength) {
      const next = shape.after(key)
      if (next !== null) {
        list.push(key, clean)
        this.attributeShape = next
        return
      }
    }
    if (!setClean(list, key, clean, this.attributeCountMax, this)) this.detail().droppedAttributes++
    else if (isShaped && list.length > length) this.attributeShape = shape.add(list[length])
  }

  /** What the exported span has as its trace state; what goes on under it has the span's own. HOT */
  get exportedTracestate () {
    return this.details === null || this.details.tracestate === null ? this.tracestate : this.details.tracestate
  }

  exportWithTracestate (tracestate) {
    this.detail().tracestate = tracestate
  }

  spanContext () {
    const context = super.spanContext()
    const { exportedTracestate } = this
    if (exportedTracestate !== this.tracestate) context.traceState = stateOf(exportedTracestate)
    return context
  }

  /** Sampled spans are exported; others that record are exported only when `keep` says so. */
  get sampled () { return (this.flags & SAMPLED) !== 0 }

  /** How many attributes may be set on it. */
  get attributeCountMax () { return this.pipeline.limits.attributes }

  /** An upper bound of its own attributes, known at once where attributeCountMax has to count. */
  get ownCountMax () { return OWN_MAX }

  detail () {
    if (this.details === null) this.details = new SpanDetails()
    return this.details
  }

  /** A key or a value was set without a part of it. Counted like an attribute that was dropped, as OTLP says of long keys. */
  attributeCut () {
    this.detail().droppedAttributes++
    this.pipeline.attributeCut()
  }

  /** All attributes as a flat list; a server span puts its own before the user's. */
  allAttributes () {
    return this.attributeList === null ? [] : this.attributeList
  }

  recordEvent (name, attributes, time) {
    const list = []
    const { attributesPerEvent, attributeValueLength } = this.pipeline.limits
    const losses = new Losses(this.pipeline)
    if (attributes !== undefined) losses.count += setAttributes(list, attributes, attributesPerEvent, attributeValueLength, losses)
    this.pushEvent(name, list, losses.count, fromTimeInput(time, now()))
  }

  pushEvent (name, list, droppedAttributesCount, time) {
    const details = this.detail()
    if (details.events.length >= this.pipeline.limits.events) {
      details.droppedEvents++
      return
    }
    details.events.push({ name, list, droppedAttributesCount, time })
  }

  finish (endedAt) {
    const { pipeline } = this
    if (pipeline.wantsEnding) pipeline.ending(this)
    this.endedAt = endedAt < this.start ? this.start : endedAt
    pipeline.ended(this)
  }
}

function readStatus (status) {
  try {
    const { code, message } = status
    return { code, message }
  } catch {
    return { code: STATUS_UNSET, message: undefined }
  }
}

function textOf (name) {
  return typeof name === 'string' ? cut(name, 1024) : String(name === undefined ? '' : typeof name)
}

/** The API tells attributes from a time by shape, as the SDK does. */
function isAttributes (value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date)
}

module.exports = { RecordingSpan, SpanDetails, OWN_MAX, STATUS_UNSET, STATUS_OK, STATUS_ERROR, OPEN }
