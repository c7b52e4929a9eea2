'use strict'

// The span of one request. It keeps references to what the route and the connection have in common and
// the few values of its own; the encoder turns that into bytes without building a list. The list is built
// for those who ask: samplers, processors, and spans whose user set one of our attributes anew.

const { RecordingSpan, OPEN, STATUS_ERROR, OWN_MAX } = require('./recording-span')
const { SERVER_KEYS } = require('./http-info')
const { NO_SHAPE } = require('./attribute-shape')
const { cut } = require('./attributes')
const { errorType, exceptionAttributes } = require('./exception')
const { now } = require('./clock')

const SPAN_KIND_SERVER = 1 // as the API counts; OTLP's is one more

// http.request.method, url.path, url.scheme, http.response.status_code; for error.type see makeRoom.
const OWN_ALWAYS = 4

// What is known of an error, until the end: nothing, that Fastify caught one, or that it is recorded already.
const NOT_FAILED = 0
const CAUGHT = 1
const RECORDED = 2

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
    this.error = undefined // what was thrown, until the end decides whether it counts
    this.failed = NOT_FAILED
    this.reply = null // Fastify's, until the end
    this.redacted = null // its query, from the first question on
  }

  get kind () { return SPAN_KIND_SERVER }
  /** Its counterpart in metrics may stand for a request without a span. */
  get isTraced () { return true }
  /** What the application sees. */
  get apiSpan () { return this }
  get scope () { return this.pipeline.scope }
  get name () { return this.details === null || this.details.name === '' ? this.route.name : this.details.name }

  /** The limit is for all attributes of a span; its own come first. */
  get attributeCountMax () {
    const { route, peer, url } = this
    const own = OWN_ALWAYS + peer.attributeCount + route.attributeList.length / 2 +
      (route.route === '' ? 0 : 1) + (route.methodOriginal === '' ? 0 : 1) + (hasQuery(url) ? 1 : 0)
    return Math.max(0, this.pipeline.limits.attributes - own)
  }

  get ownCountMax () { return OWN_MAX + this.route.attributeList.length / 2 }

  /** Remembers what was thrown. Whether it is the request's error depends on the response's status. */
  fail (error) {
    if (this.failed === RECORDED && this.error === error) return
    this.error = error
    this.failed = CAUGHT
  }

  /** Records what the application has answered by itself: the exception in any case, `error.type` if the response is 5xx. */
  recordFailure (error) {
    if (this.endedAt !== OPEN) return
    this.recordException(error)
    this.error = error
    this.failed = RECORDED
  }

  /**
   * Ends the span with what became of the response.
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
    if (unfinished !== '' || httpStatus >= 500) this.markFailed(httpStatus, unfinished)
    this.error = undefined
    this.finish(now())
  }

  markFailed (httpStatus, unfinished) {
    const details = this.detail()
    const { attributeValueLength } = this.pipeline.limits
    const ok = details.statusCode === 1
    if (!ok) details.statusCode = STATUS_ERROR
    if (this.errorType === '') {
      this.errorType = unfinished !== '' ? unfinished : this.failed !== NOT_FAILED ? errorType(this.error) : String(httpStatus)
    }
    this.makeRoom()
    if (this.failed === CAUGHT) this.pushEvent('exception', exceptionAttributes(this.error, attributeValueLength), 0, now())
  }

  /** For error.type, which few spans have: the last of the user's gives way where the limit is reached. */
  makeRoom () {
    const { attributeList } = this
    const countMax = Math.max(0, this.attributeCountMax - 1)
    if (attributeList === null || attributeList.length <= countMax * 2 || attributeList.includes('error.type')) return
    this.detail().droppedAttributes += attributeList.length / 2 - countMax
    attributeList.length = countMax * 2
    this.attributeShape = NO_SHAPE
  }

  /**
   * Its query as it may leave the process, '' for none. Asked for before anything of the span is written: the user's function
   * is called once, and may end spans itself.
   */
  get query () {
    if (this.redacted === null) {
      const { url, pipeline } = this
      const query = hasQuery(url) ? pipeline.redactor.redact(url.slice(url.indexOf('?') + 1)) : ''
      const { attributeValueLength } = pipeline.limits // what was redacted may have become longer
      this.redacted = query.length > attributeValueLength ? cut(query, attributeValueLength) : query
    }
    return this.redacted
  }

  /** What the conventions ask for at the start of a span, as a flat list. */
  ownAttributes () {
    const { route, peer, url } = this
    const { attributeValueLength } = this.pipeline.limits
    const list = ['http.request.method', route.method]
    if (route.methodOriginal !== '') list.push('http.request.method_original', route.methodOriginal)
    if (route.route !== '') list.push('http.route', route.route)
    const mark = url.indexOf('?')
    list.push('url.path', cut(mark === -1 ? url : url.slice(0, mark), attributeValueLength), 'url.scheme', peer.scheme)
    if (mark !== -1 && mark !== url.length - 1) list.push('url.query', this.query)
    if (peer.protocolVersion !== '') list.push('network.protocol.version', peer.protocolVersion)
    list.push(...peer.attributeList, ...route.attributeList)
    return list
  }

  allAttributes () {
    const list = this.everyAttribute()
    const { attributes } = this.pipeline.limits
    return list.length > attributes * 2 ? list.slice(0, attributes * 2) : list
  }

  everyAttribute () {
    const list = this.ownAttributes()
    if (this.httpStatus !== 0) list.push('http.response.status_code', this.httpStatus)
    if (this.errorType !== '') list.push('error.type', this.errorType)
    const users = this.attributeList
    if (users === null) return list
    for (let i = 0; i < users.length; i += 2) {
      let at = 0 // not indexOf: a caller's user agent may read like a key
      while (at < list.length && list[at] !== users[i]) at += 2
      if (at < list.length) list[at + 1] = users[i + 1]
      else list.push(users[i], users[i + 1])
    }
    return list
  }

  get droppedAttributesCount () {
    const { attributes } = this.pipeline.limits
    return super.droppedAttributesCount + Math.max(0, this.everyAttribute().length / 2 - attributes)
  }

  /**
   * Whether its own attributes are as the route's template has them: all of them, uncut, and none that the
   * user set anew. Else the list is built and written as a whole. HOT
   */
  get fitsTemplate () {
    return this.url.length <= this.pipeline.templateUrlLengthMax && (this.attributeList === null || this.usersFitTemplate(this.attributeList))
  }

  usersFitTemplate (users) {
    const { attributeShape: shape } = this
    if (shape.length === users.length && !shape.hasServerKey && this.route.attributeList.length === 0) return true
    for (let i = 0; i < users.length; i += 2) {
      if (SERVER_KEYS.has(users[i]) || this.route.attributeList.includes(users[i])) return false
    }
    return true
  }
}

/** Whether there is a `url.query`: a question mark alone is none. */
function hasQuery (url) {
  const mark = url.indexOf('?')
  return mark !== -1 && mark !== url.length - 1
}

module.exports = { ServerSpan, SPAN_KIND_SERVER }
