'use strict'

// A span that records: the API's Span and the SDK's ReadableSpan. Ids are words until their hex is asked for, attributes a flat
// list until an object is asked for. What few spans have hangs under `details`: the usual span is one object.

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

const OWN_MAX = 32 // more than a span has of its own beside those that are set

// The specification has no limits for these: megabytes would cost the span.
const TEXT_LENGTH_MAX = 16384 // of names and descriptions
const EVENT_NAME_LENGTH_MAX = 1024

/** An instrumentation scope: which code made a span. Shared by all its spans. */
class Scope {
  #key // not enumerable, as `encoded`: exporters print scopes

  constructor (name, version, schemaUrl) {
    this.name = name
    this.version = version
    this.schemaUrl = schemaUrl
    this.#key = JSON.stringify(this)
    Object.defineProperty(this, 'encoded', { value: null, writable: true, enumerable: false }) // a slot for the encoder's bytes
  }

  /** Equal for equal scopes. */
  get key () { return this.#key }
}

class SpanDetails {
  name = ''
  tracestate = null // exported in place of the span's own, where it is known only at the end
  statusCode = STATUS_UNSET
  statusMessage = ''
  events = []
  links = []
  droppedAttributes = 0
  lengthMax = -1 // of the attributes' list, once it is full
  droppedEvents = 0
  droppedLinks = 0
}

const NO_DETAILS = Object.freeze(new SpanDetails())

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
    this.calls = null // the first of its calls, undefined when it has ended
    this.runs = null // what follows the calls that it repeats, and has its say before the end
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
    const context = isFull ? undefined : readContext(() => link.context) // a copy: its owner may change it, and its code must not run at the end
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

  // Ours. Subclasses add `kind`, `name`, and `scope` with the SDK's name for it.

  /** Sets one attribute, or counts it as dropped. HOT, once per attribute. */
  assign (key, value) {
    const { attributes, attributeValueLength } = this.pipeline.limits
    // A lone surrogate in a short text is mended where it is read or written: to look for one costs a call each.
    const isShort = typeof value === 'string' && value.length <= attributeValueLength
    const isKey = typeof key === 'string' && key !== ''
    const clean = !isKey ? undefined : isShort ? value : cleanValue(value, attributeValueLength, this)
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
    // A key that came behind the same keys before is sound and new to the span.
    const next = shape.length === length && length < this.roomyLength ? shape.after(key) : null
    if (next === null) this.assignOther(list, shape, key, clean)
    else {
      list.push(key, clean)
      this.attributeShape = next
    }
  }

  /** The same of a key that is there already, comes for the first time behind these, or is one too many. */
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

  /** Whether its list may not become longer. */
  isFull (length) {
    if (this.details !== null && this.details.lengthMax === length) return true
    this.roomyLength = this.attributeCountMax * 2
    if (length >= this.roomyLength) this.detail().lengthMax = length // asked for once
    return length >= this.roomyLength
  }

  /** How many attributes may be set on it. */
  get attributeCountMax () { return this.pipeline.limits.attributes }

  /** An upper bound of its own attributes, known at once where attributeCountMax has to count. */
  get ownCountMax () { return OWN_MAX }

  /** All attributes as a flat list; a server span puts its own before the user's. */
  allAttributes () { return this.attributeList ?? [] }

  /** Counts a key or a value that was set without a part of it as a dropped attribute, as OTLP says of long keys. */
  attributeCut () {
    this.detail().droppedAttributes++
    this.pipeline.attributeCut()
  }

  /** The attributes of an event or a link, and how many of them were dropped or cut. */
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

  /** The trace state of the exported span; what goes on under the span has the span's own. HOT */
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

  /** Lets go of what is in its bytes by now: an idle connection keeps the span of its last request. */
  empty () {
    if (this.pipeline.wantsEnding) return // a processor has it, and may export it later
    this.attributeList = null
    this.attributeShape = EMPTY_SHAPE
    if (this.details !== null) this.details.events = this.details.links = []
  }

  /** Ends it, and does not hand it on yet. HOT, as `finish`. */
  stop (endedAt) {
    this.calls = undefined
    if (this.runs !== null) this.runs.parentEnds(this)
    if (this.pipeline.wantsEnding) this.pipeline.ending(this)
    this.endedAt = endedAt < this.start ? this.start : endedAt
  }
}

// A server span has a route, a child an info, and each is asked for both: what others put on Object.prototype is neither.
Object.assign(RecordingSpan.prototype, { route: undefined, info: undefined })

/** The API tells attributes from a time by shape, as the SDK does. */
function isAttributes (value) {
  return value !== null && typeof value === 'object' && !isArray(value) && !isDate(value)
}

module.exports = { Scope, SCHEMA_URL, RecordingSpan, SpanDetails, OWN_MAX, STATUS_OK, STATUS_ERROR }
