'use strict'

// The span of one request: the infos of its route and its connection, and a few values of its own. The list of its attributes is
// built only for samplers, processors, and spans whose user set one of ours anew.

const { OPEN } = require('../context/trace-context.js')
const { RecordingSpan, STATUS_ERROR, OWN_MAX } = require('./recording-span.js')
const { SERVER_KEYS } = require('./http-info.js')
const { NO_SHAPE, cut, indexOfKey, hasKey, errorType } = require('./attributes.js')
const { GOOD, FAILED, LEFT, NOT_FAILED, CAUGHT, RECORDED, NOT_OURS, isBroken, outcomeOf, errorTypeOf } = require('./outcome.js')
const { now } = require('../runtime/timers.js')

const SPAN_KIND_SERVER = 1 // as the API counts; OTLP's is one more

class ServerSpan extends RecordingSpan {
  /**
   * @param {Pipeline} pipeline
   * @param {number} start milliseconds on the monotonic clock
   * @param {RouteInfo} route
   * @param {PeerInfo} peer
   * @param {string} url the request target as it came
   */
  // HOT, once per sampled request. Budget: 1 object. Proof: bench/micro/server-span.bench.js
  constructor (pipeline, start, route, peer, url) {
    super(pipeline, start)
    this.route = route
    this.peer = peer
    this.url = url
    this.httpStatus = 0 // 0: no headers went out
    this.errorType = ''
    this.error = undefined // what was thrown, until the end, which decides whether it counts
    this.failed = NOT_FAILED // see outcome.js
    this.reply = null // Fastify's, until the end
    this.redacted = null // its query, once it was asked for
  }

  get kind () { return SPAN_KIND_SERVER }
  /** Whether there is a span: RequestRecord in lib/features/metrics/server-metrics.js may stand for a request without one. */
  get isTraced () { return true }
  /** The ids that an exemplar takes, and the flags that say whether it is one: what is exported may be. */
  get traceContext () { return this }
  get exemplarFlags () { return this.flags }
  get scope () { return this.pipeline.scope }
  get instrumentationScope () { return this.scope }
  get name () { return this.details === null || this.details.name === '' ? this.route.name : this.details.name }

  /** What its own attributes, which come first, leave of the limit. For error.type see makeRoom. */
  get attributeCountMax () {
    const { route, peer, url } = this
    const own = route.requestAttributes(peer, url).length + peer.attributeList.length + route.attributeList.length
    return Math.max(0, this.pipeline.limits.attributes - own / 2 - (hasQuery(url) ? 1 : 0) - 1) // the status
  }

  get ownCountMax () { return OWN_MAX + this.route.attributeList.length / 2 }

  /** Remembers what was thrown. Whether it is the request's error depends on the response's status. */
  fail (error) {
    if (this.failed === RECORDED && this.error === error) return
    this.error = error
    this.failed = CAUGHT
  }

  /** Records an error that the application has answered itself: the exception in any case, `error.type` if the response is 4xx or 5xx. */
  recordFailure (error) {
    if (this.endedAt !== OPEN) return
    this.recordException(error)
    this.error = error
    this.failed = RECORDED
  }

  /**
   * Ends the span with the outcome of the response.
   * @param {number} httpStatus 0 when no headers went out
   * @param {string} unfinished '' for a whole response, else the `error.type` of a broken one
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

  /** Remembers why the application wants it to be exported, where `keep` is set. */
  keepFor (_reason) {}

  /** Whether it is exported though it is not sampled. */
  get isKept () { return false }

  /** As far as it is known, see outcome.js. */
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

  /** Says why a request was answered 4xx, where something was thrown. By the conventions it is no error: the status stays unset. */
  markRefused () {
    this.makeRoom()
    if (this.attributeList === null || !hasKey(this.attributeList, 'error.type')) this.setAttribute('error.type', errorType(this.error))
    if (this.failed === CAUGHT) this.recordException(this.error)
  }

  /** Drops the last of the user's attributes where the limit leaves none for `count` that few spans have: error.type, and more. */
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

  /** Its query as it may leave the process, '' for none. The user's redactQuery is called once, and may end spans itself. */
  get query () {
    if (this.redacted === null) this.redact()
    return this.redacted
  }

  redact () {
    const { url, pipeline } = this
    const query = hasQuery(url) ? pipeline.redactor.redact(url.slice(url.indexOf('?') + 1)) : ''
    const { attributeValueLength } = pipeline.limits // what was redacted may have become longer
    this.redacted = query.length > attributeValueLength ? cut(query, attributeValueLength) : query
  }

  /** @returns {Array<unknown>} what the conventions ask for at the start of a span, flat */
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

  /** Whether its own attributes are as the route's template has them: uncut, and none that the user set anew. HOT */
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

// Not a field: whoever prints a span would find it in itself.
Object.defineProperty(/** @type {object} */ (ServerSpan.prototype), 'request', { get () { return this } })

/** Whether there is a `url.query`: a question mark alone is none. */
function hasQuery (url) {
  const mark = url.indexOf('?')
  return mark !== -1 && mark !== url.length - 1
}

module.exports = { ServerSpan, SPAN_KIND_SERVER }
