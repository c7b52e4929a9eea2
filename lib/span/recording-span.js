'use strict'

// A span that records. It implements the API's Span and the SDK's ReadableSpan. Ids are words and attributes are a flat list; hex and
// objects are made on demand. Values that few spans have are kept in `details`, so that the usual span is one object.

const { isDate } = require('node:util').types
const { TraceContext, readContext, OPEN, PARENT_NONE, PARENT_REMOTE } = require('../context/trace-context.js')
const { TraceState } = require('../context/tracestate.js')
const { hex } = require('../context/ids.js')
const { now, toHrTime, fromTimeInput } = require('../runtime/timers.js')
const { setAttributes, ownKeys, read, isArray, elements, cleanValue, cut, cutKey, toObject, EMPTY_SHAPE, SEARCHED_MAX, exceptionAttributes } = require('./attributes.js')

// Which version of OpenTelemetry's semantic conventions our attributes follow, on the resource and on our own scope.
// https://opentelemetry.io/docs/specs/otel/schemas/
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0'

const STATUS_UNSET = 0
const STATUS_OK = 1
const STATUS_ERROR = 2

const OWN_MAX = 32 // more than the number of a span's own attributes, which the user does not set

// The specification sets no limits for these. A span with megabytes of text would be lost.
const TEXT_LENGTH_MAX = 16384 // of span names and status descriptions
const EVENT_NAME_LENGTH_MAX = 1024

/** An instrumentation scope: the library that created a span. All its spans share it. */
class Scope {
  #key // private, and `encoded` is not enumerable, because exporters print scopes

  constructor (name, version, schemaUrl) {
    this.name = name
    this.version = version
    this.schemaUrl = schemaUrl
    this.#key = JSON.stringify(this)
    Object.defineProperty(this, 'encoded', { value: null, writable: true, enumerable: false }) // a slot for the encoder's bytes
  }

  /** Equal scopes have equal keys. */
  get key () { return this.#key }
}

class SpanDetails {
  name = ''
  tracestate = null // exported instead of the span's own, if it is known only at the end
  statusCode = STATUS_UNSET
  statusMessage = ''
  events = []
  links = []
  droppedAttributes = 0
  lengthMax = -1 // the length of the attribute list when it became full
  droppedEvents = 0
  droppedLinks = 0
}

const NO_DETAILS = Object.freeze(new SpanDetails())

class RecordingSpan extends TraceContext {
  /**
   * @param {Pipeline} pipeline receives the span when it ends; has limits, resource and scope
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
    this.attributeShape = EMPTY_SHAPE // describes the keys only while its length equals the list's
    this.roomyLength = 0 // below this list length, the limit need not be checked
    this.details = null
    this.localRoot = null // the request's span, if it holds its children back (see `keep`)
    this.calls = null // the first of its calls, undefined after the end
    this.runs = null // tracks its repeated calls, and is notified before the span ends
  }

  // The API's Span.

  isRecording () { return this.endedAt === OPEN }

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
    const isGiven = isAttributes(attributesOrTime)
    const { list, dropped } = this.copied(isGiven ? attributesOrTime : undefined, this.pipeline.limits.attributesPerEvent)
    const text = typeof name === 'string' ? cut(name, EVENT_NAME_LENGTH_MAX) : name === undefined ? '' : typeof name
    this.pushEvent(text, list, dropped, fromTimeInput(isGiven ? time : attributesOrTime, now()))
    return this
  }

  addLink (link) {
    if (this.endedAt !== OPEN) return this
    const details = this.detail()
    const { links, attributesPerLink } = this.pipeline.limits
    const isFull = details.links.length >= links
    if (isFull) this.pipeline.overLimit('links')
    const context = isFull ? undefined : readContext(() => link.context) // a copy: the caller may change the original, and its code must not run at export
    if (context === undefined) {
      details.droppedLinks++
      return this
    }
    const { list, dropped } = this.copied(read(link, 'attributes'), attributesPerLink)
    details.links.push({ context, list, droppedAttributesCount: dropped })
    return this
  }

  addLinks (links) {
    for (const link of elements(links)) this.addLink(link)
    return this
  }

  setStatus (status) {
    if (this.endedAt !== OPEN) return this
    const code = read(status, 'code')
    const message = read(status, 'message')
    if (code !== STATUS_OK && code !== STATUS_ERROR) return this
    const details = this.detail()
    if (details.statusCode === STATUS_OK) return this // Ok is final
    details.statusCode = code
    // Only errors have a description.
    details.statusMessage = code === STATUS_ERROR && typeof message === 'string' ? cut(message, TEXT_LENGTH_MAX) : ''
    return this
  }

  updateName (name) {
    if (this.endedAt === OPEN && typeof name === 'string') this.detail().name = cut(name, TEXT_LENGTH_MAX)
    return this
  }

  recordException (exception, time) {
    if (this.endedAt !== OPEN) return
    const list = exceptionAttributes(exception, this.pipeline.limits.attributeValueLength)
    this.pushEvent('exception', list, 0, fromTimeInput(time, now()))
  }

  end (endTime) {
    if (this.endedAt !== OPEN || (this.pipeline.wantsEnding && this.pipeline.endsNow.has(this))) return
    this.finish(endTime === undefined ? now() : fromTimeInput(endTime, now()))
  }

  // The SDK's ReadableSpan.

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
    const { statusCode: code, statusMessage: message } = this.details ?? NO_DETAILS
    return message === '' ? { code } : { code, message }
  }

  get events () {
    return (this.details ?? NO_DETAILS).events.map(({ name, time, list, droppedAttributesCount }) =>
      ({ name, time: toHrTime(time), attributes: toObject(list), droppedAttributesCount }))
  }

  get links () {
    return (this.details ?? NO_DETAILS).links.map(({ context, list, droppedAttributesCount }) =>
      ({ context: context.spanContext(), attributes: toObject(list), droppedAttributesCount }))
  }

  get resource () { return this.pipeline.resource }
  get droppedAttributesCount () { return (this.details ?? NO_DETAILS).droppedAttributes }
  get droppedEventsCount () { return (this.details ?? NO_DETAILS).droppedEvents }
  get droppedLinksCount () { return (this.details ?? NO_DETAILS).droppedLinks }

  // Our own. Subclasses add `kind`, `name`, `scope`, and `instrumentationScope`, the SDK's name for the scope.

  /** Sets one attribute, or counts it as dropped. HOT, once per attribute. */
  assign (key, value) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    // A lone surrogate in a short text is replaced when it is written or read. Checking here would cost a call per attribute.
    const isShort = typeof value === 'string' && value.length <= attributeValueLength
    const isKey = typeof key === 'string' && key !== ''
    const clean = !isKey ? undefined : isShort ? value : cleanValue(value, attributeValueLength, this)
    if (clean === undefined) {
      this.detail().droppedAttributes++
      return
    }
    // After the value was read: reading it may run code that sets another attribute.
    if (this.attributeList === null) {
      this.attributeList = []
      this.roomyLength = (attributes - this.ownCountMax) * 2
    }
    const { attributeList: list, attributeShape: shape } = this
    const { length } = list
    // If the shape has this key as a successor, the key is valid and not yet on the span.
    const next = shape.length === length && length < this.roomyLength ? shape.after(key) : null
    if (next === null) this.assignOther(list, shape, key, clean)
    else {
      list.push(key, clean)
      this.attributeShape = next
    }
  }

  /** The other cases: the key is set already, follows these keys for the first time, or exceeds the limit. */
  assignOther (list, shape, key, clean) {
    const { length } = list
    const name = cutKey(key, this)
    if (shape.length !== length && length > SEARCHED_MAX) shape = this.attributeShape = shape.ownOf(list)
    const place = shape.placeIn(list, name)
    if (place !== -1) {
      list[place + 1] = clean
      return
    }
    if (length >= this.roomyLength && this.isFull(length)) {
      this.detail().droppedAttributes++
      this.pipeline.overLimit('attributes')
      return
    }
    list.push(name, clean)
    this.attributeShape = shape.grown(name, length)
  }

  /** Whether the attribute list has reached the limit. */
  isFull (length) {
    if (this.details !== null && this.details.lengthMax === length) return true
    this.roomyLength = this.attributeCountMax * 2
    if (length >= this.roomyLength) this.detail().lengthMax = length // so that the limit is computed once
    return length >= this.roomyLength
  }

  /** How many attributes the user may set. */
  get attributeCountMax () { return this.pipeline.limits.attributes }

  /** An upper bound for the number of its own attributes. Cheap, unlike attributeCountMax, which counts them. */
  get ownCountMax () { return OWN_MAX }

  /** All attributes as a flat list. A server span puts its own before the user's. */
  allAttributes () { return this.attributeList ?? [] }

  /** Counts an attribute whose key or value was cut as a dropped one, as OTLP requires for long keys. */
  attributeCut () {
    this.detail().droppedAttributes++
    this.pipeline.attributeCut()
  }

  /** A copy of the attributes of an event or a link, and how many of them were dropped or cut. */
  copied (attributes, countMax) {
    const { pipeline } = this
    const list = []
    let cutCount = 0
    const owner = {
      attributeCut () {
        cutCount++
        pipeline.attributeCut()
      }
    }
    const refused = setAttributes(list, attributes, countMax, pipeline.limits.attributeValueLength, owner)
    return { list, dropped: refused + cutCount }
  }

  pushEvent (name, list, droppedAttributesCount, time) {
    const details = this.detail()
    if (details.events.length < this.pipeline.limits.events) {
      details.events.push({ name, list, droppedAttributesCount, time })
      return
    }
    details.droppedEvents++
    this.pipeline.overLimit('events')
  }

  detail () { return (this.details ??= new SpanDetails()) }

  /** The tracestate of the exported span. Children and outgoing calls get the span's own. HOT */
  get exportedTracestate () {
    return this.details === null || this.details.tracestate === null ? this.tracestate : this.details.tracestate
  }

  exportWithTracestate (tracestate) { this.detail().tracestate = tracestate }

  spanContext () {
    const context = super.spanContext()
    const { exportedTracestate } = this
    if (exportedTracestate !== this.tracestate) context.traceState = new TraceState(exportedTracestate)
    return context
  }

  finish (endedAt) {
    this.stop(endedAt)
    this.pipeline.ended(this)
  }

  /** Releases what is encoded by now. An idle connection keeps the span of its last request in memory. */
  empty () {
    if (this.pipeline.wantsEnding) return // a processor has the span and may export it later
    this.attributeList = null
    this.attributeShape = EMPTY_SHAPE
    if (this.details !== null) this.details.events = this.details.links = []
  }

  /** Ends the span without passing it to the pipeline. HOT, as `finish`. */
  stop (endedAt) {
    this.calls = undefined
    if (this.runs !== null) this.runs.parentEnds(this)
    if (this.pipeline.wantsEnding) this.pipeline.ending(this)
    this.endedAt = endedAt < this.start ? this.start : endedAt
  }
}

// A server span has a route and a child has an info, but both properties are read on every span. These defaults hide properties of the
// same names that other code puts on Object.prototype.
Object.assign(RecordingSpan.prototype, { route: undefined, info: undefined })

/** Whether an argument is attributes rather than a time. Distinguished by shape, as in the SDK. */
function isAttributes (value) {
  return value !== null && typeof value === 'object' && !isArray(value) && !isDate(value)
}

module.exports = { Scope, SCHEMA_URL, RecordingSpan, SpanDetails, OWN_MAX, STATUS_OK, STATUS_ERROR }
