'use strict'

// The span of one request. It refers to the infos of its route and its connection, and has a few values of its own. Its attribute list is
// built only for samplers, for processors, and if the user has overridden one of our attributes.

const { OPEN } = require('../context/trace-context.js')
const { RecordingSpan, STATUS_ERROR, OWN_MAX } = require('./recording-span.js')
const { SERVER_KEYS } = require('./http-info.js')
const { NO_SHAPE, cut, indexOfKey, hasKey, errorType } = require('./attributes.js')
const { GOOD, FAILED, LEFT, NOT_FAILED, CAUGHT, RECORDED, NOT_OURS, isBroken, outcomeOf, errorTypeOf } = require('./outcome.js')
const { now } = require('../runtime/timers.js')

const SPAN_KIND_SERVER = 1 // the API's number; OTLP's is one higher

class ServerSpan extends RecordingSpan {
  /**
   * @param {Pipeline} pipeline
   * @param {number} start milliseconds on the monotonic clock
   * @param {RouteInfo} route
   * @param {PeerInfo} peer
   * @param {string} url the request target as received
   */
  // HOT, once per sampled request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  constructor (pipeline, start, route, peer, url) {
    super(pipeline, start)
    this.route = route
    this.peer = peer
    this.url = url
    this.httpStatus = 0 // 0: no headers were sent
    this.errorType = ''
    this.error = undefined // what was thrown. Kept until the end, when the response decides whether it counts
    this.failed = NOT_FAILED // see outcome.js
    this.reply = null // Fastify's reply, until the end
    this.redacted = null // the redacted query, after its first use
  }

  get kind () { return SPAN_KIND_SERVER }
  /** Whether the record is a span. A request without a span may have a RequestRecord of lib/features/metrics/server-metrics.js instead. */
  get isTraced () { return true }
  /** The ids for an exemplar, and the flags that decide whether to make one. Only an exported span can be an exemplar. */
  get traceContext () { return this }
  get exemplarFlags () { return this.flags }
  get scope () { return this.pipeline.scope }
  get instrumentationScope () { return this.scope }
  get name () { return this.details === null || this.details.name === '' ? this.route.name : this.details.name }

  /** How many attributes the limit leaves to the user after the span's own, which come first. For error.type see makeRoom. */
  get attributeCountMax () {
    const { route, peer, url } = this
    const own = route.requestAttributes(peer, url).length + peer.attributeList.length + route.attributeList.length
    return Math.max(0, this.pipeline.limits.attributes - own / 2 - (hasQuery(url) ? 1 : 0) - 1) // minus one for the status code
  }

  get ownCountMax () { return OWN_MAX + this.route.attributeList.length / 2 }

  /** Remembers what was thrown. Whether it is the request's error depends on the response's status. */
  fail (error) {
    if (this.failed === RECORDED && this.error === error) return
    this.error = error
    this.failed = CAUGHT
  }

  /** Records an error that the application handled itself: always the exception, and `error.type` if the response is 4xx or 5xx. */
  recordFailure (error) {
    if (this.endedAt !== OPEN) return
    this.recordException(error)
    this.error = error
    this.failed = RECORDED
  }

  /**
   * Ends the span with the outcome of the response.
   * @param {number} httpStatus 0 if no headers were sent
   * @param {string} unfinished '' for a complete response, else the `error.type` of an incomplete one
   */
  // HOT, once per sampled request.
  close (httpStatus, unfinished) {
    if (this.endedAt !== OPEN) {
      this.error = undefined
      return
    }
    this.httpStatus = httpStatus
    if (unfinished !== '' || httpStatus >= 400) this.markFailed(httpStatus, unfinished)
    this.error = undefined
    this.finish(now())
  }

  /** Remembers why the application wants the span exported. Only spans of the option `keep` do this. */
  keepFor (_reason) {}

  /** Whether it is exported although it is not sampled. */
  get isKept () { return false }

  /** The outcome so far, see outcome.js. */
  get outcome () {
    if (this.details === null || this.details.statusCode !== STATUS_ERROR) return GOOD
    return this.failed === NOT_OURS ? LEFT : FAILED
  }

  finish (endedAt) {
    const { route } = this
    if (endedAt - this.start >= route.explainedAfterMs && route.explainer?.takes(this, endedAt)) return
    super.finish(endedAt)
  }

  markFailed (httpStatus, unfinished) {
    if (!isBroken(httpStatus, unfinished)) {
      if (this.failed !== NOT_FAILED && this.pipeline.clientErrors) this.markRefused()
      return
    }
    const details = this.detail()
    const outcome = outcomeOf(httpStatus, unfinished, details.statusCode)
    if (outcome !== GOOD) details.statusCode = STATUS_ERROR
    this.errorType = errorTypeOf(httpStatus, unfinished, this)
    this.makeRoom()
    if (this.failed === CAUGHT) this.recordException(this.error)
    if (outcome === LEFT) this.failed = NOT_OURS
  }

  /** Records the error behind a 4xx response. The conventions do not count it as an error, so the span status stays unset. */
  markRefused () {
    this.makeRoom()
    if (this.attributeList === null || !hasKey(this.attributeList, 'error.type')) this.setAttribute('error.type', errorType(this.error))
    if (this.failed === CAUGHT) this.recordException(this.error)
  }

  /** Makes room for `count` attributes that few spans have, such as error.type. Drops the user's last attributes if the limit is reached. */
  makeRoom (count = 1) {
    const { attributeList } = this
    if (attributeList === null) return
    const countMax = Math.max(0, this.attributeCountMax - count)
    const place = indexOfKey(attributeList, 'error.type')
    if (attributeList.length <= countMax * 2 || (place !== -1 && count === 1)) return
    const reason = attributeList[place + 1]
    this.detail().droppedAttributes += attributeList.length / 2 - countMax
    attributeList.length = countMax * 2
    if (place >= countMax * 2) attributeList.splice(-2, 2, 'error.type', reason)
    this.attributeShape = NO_SHAPE
    this.pipeline.overLimit('attributes')
  }

  /** The redacted query, '' if the URL has none. The user's redactQuery is called only once, and it may end spans itself. */
  get query () {
    if (this.redacted === null) this.redact()
    return this.redacted
  }

  redact () {
    const { url, pipeline } = this
    const query = hasQuery(url) ? pipeline.redactor.redact(url.slice(url.indexOf('?') + 1)) : ''
    const { attributeValueLength } = pipeline.limits // redaction may have made the query longer
    this.redacted = query.length > attributeValueLength ? cut(query, attributeValueLength) : query
  }

  /** @returns {Array<unknown>} the attributes that the conventions require at the start of a span, as a flat list */
  ownAttributes () {
    const { route, peer, url } = this
    const { attributeValueLength } = this.pipeline.limits
    const mark = url.indexOf('?')
    const path = cut(mark === -1 ? url : url.slice(0, mark), attributeValueLength)
    const query = hasQuery(url) ? ['url.query', this.query] : []
    return this.pipeline.shown([...route.requestAttributes(peer, path), ...query, ...peer.attributeList, ...route.attributeList])
  }

  allAttributes () {
    const list = this.everyAttribute()
    return list.slice(0, this.pipeline.limits.attributes * 2)
  }

  everyAttribute () {
    const list = this.ownAttributes()
    if (this.httpStatus !== 0) list.push('http.response.status_code', this.httpStatus)
    if (this.errorType !== '') list.push('error.type', this.errorType)
    const own = list.slice()
    const users = this.attributeList ?? []
    for (let i = 0; i < users.length; i += 2) {
      const place = indexOfKey(own, users[i])
      if (place === -1) list.push(users[i], users[i + 1])
      else list[place + 1] = users[i + 1]
    }
    return this.pipeline.shown(list)
  }

  get droppedAttributesCount () {
    const { attributes } = this.pipeline.limits
    return super.droppedAttributesCount + Math.max(0, this.everyAttribute().length / 2 - attributes)
  }

  /** Whether the route's template fits: none of its own attributes is cut, and the user has overridden none. HOT */
  get fitsTemplate () {
    return this.url.length <= this.pipeline.templateUrlLengthMax &&
      (this.attributeList === null || this.usersFitTemplate(this.attributeList))
  }

  usersFitTemplate (users) {
    const { attributeShape: shape } = this
    if (shape.length === users.length && !shape.hasServerKey && this.route.attributeList.length === 0) return true
    for (let i = 0; i < users.length; i += 2) {
      if (SERVER_KEYS.has(users[i]) || hasKey(this.route.attributeList, users[i])) return false
    }
    return true
  }
}

// On the prototype: as a field, the span would contain itself when it is printed.
Object.defineProperty(/** @type {object} */ (ServerSpan.prototype), 'request', { get () { return this } })

/** Whether the URL has a query. A question mark alone is not one. */
function hasQuery (url) {
  const mark = url.indexOf('?')
  return mark !== -1 && mark !== url.length - 1
}

module.exports = { ServerSpan, SPAN_KIND_SERVER }
