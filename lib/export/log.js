'use strict'

// Counts what happened to spans, log records or metric points, and logs it for the operator. The collector's own text has already been
// made `printable`.

const { processState } = require('../runtime/process-state.js')
const { Said, counted } = require('../runtime/report.js')

// Ports of web pages and of other protocols that observability servers offer next to their OTLP receivers.
const PORTS = new Map([
  ['3000', "3000 is Grafana's page"],
  ['3200', "3200 is Tempo's query API"],
  ['4317', '4317 is gRPC'],
  ['8888', "8888 is the Collector's own metrics"],
  ['9090', '9090 is Prometheus'],
  ['9411', "9411 is Zipkin's"],
  ['13133', "13133 is the Collector's health check"],
  ['16686', "16686 is Jaeger's page"],
  ['55679', "55679 is the Collector's zPages"]
])

const COLLECTORS_MAX = 64 // how many are remembered; a test suite may have one per test

/** What the applications of the process have logged about one collector. What one application has logged, the others do not log again. */
class CollectorLog {
  said = new Said()
  lost = new Map() // kind -> spans lost since that kind was last logged
  lostInOutage = 0
  thinLevel = 0 // the highest level of the outage
  isOutage = false
}

class ExportLog {
  /** @type {Report} */ #report
  #stats
  #noun
  #optional
  #url
  #through
  #target
  #shared
  /** @type {Report} */ #sharedReport

  // `url` may hold credentials, or an API key in its query. Neither is ever logged. `optional`: { code, off } for a signal that many
  // collectors do not accept. `code` is logged once after a 404, and `off` is the option that turns the signal off.
  constructor (report, stats, { url, proxy = null }, noun = 'span', optional = null) {
    this.#report = report
    this.#stats = stats
    this.#noun = noun
    this.#optional = optional
    this.#url = new URL(url)
    this.#through = proxy === null ? '' : `; through the proxy ${proxy.printableUrl}`
    this.#target = this.#url.origin + this.#url.pathname
    this.#shared = sharedOf(this.#target)
    this.#sharedReport = report.sharing(this.#shared.said)
  }

  /** Counts a failed attempt. The next call reports what happens to its spans. */
  failed (outcome) {
    this.#stats.exportsFailed++
    this.#stats.lastError = failureOf(outcome) + hintOf(outcome, this.#url) + this.#through
  }

  /** `queued`: how many wait for the next attempt; 0 if it will send newer ones instead. */
  willRetry (outcome, queued) {
    if (outcome.error?.code === 'ERR_ACCESS_DENIED') {
      this.#sharedReport.warn('LT_WARN_PERMISSION', `no permission to connect to ${this.#target}: start node with --allow-net`, this.#target)
    }
    this.#shared.isOutage = true
    const later = queued > 0 ? `${counted(queued, this.#noun)} buffered for retry` : 'the next export sends newer ones'
    const message = `cannot deliver ${this.#noun}s to ${this.#target} (${this.#stats.lastError}); ${later}`
    this.#sharedReport.warn('LT_WARN_LOSS', message, 'collector')
  }

  // Losses are grouped by status class, so that a collector whose status varies is not logged more often.
  refused (outcome, spans) {
    const isMisdirected = outcome.disposition === 'misdirected' // a retry would not help, because the server is not a collector
    if (isMisdirected) this.#stats.rejected += spans
    else this.#stats.drop('non_retryable', spans)
    if (outcome.status === 404 && this.#optional !== null) {
      const { code, off } = this.#optional
      return this.#report.warn(code, `${this.#target} answers 404: it may not support ${this.#noun}s. light-trace retries once a minute; ${off} turns this off`)
    }
    const why = this.#stats.lastError
    if (isMisdirected) {
      return this.#loss('misdirected', spans, (sum) => `${this.#target} is not an OTLP receiver: ${counted(sum, this.#noun)} lost (${why})`)
    }
    const kind = outcome.error === null ? `status ${Math.floor(outcome.status / 100)}xx` : 'connection'
    this.#loss(kind, spans, (sum) => `${this.#target} refused ${counted(sum, this.#noun)}, which are dropped (${why})`)
  }

  delivered (outcome, spans) {
    const rejected = Math.min(Math.max(outcome.partialSuccess?.rejected ?? 0, 0), spans)
    this.#stats.exportsOk++
    this.#stats.delivered += spans - rejected
    this.#stats.rejected += rejected
    const message = outcome.partialSuccess?.message ?? ''
    if (rejected > 0) this.#loss('rejected', rejected, (sum) => `${this.#target} rejected ${counted(sum, this.#noun)}: ${message}`)
    else if (message !== '') this.#sharedReport.warn('LT_WARN_COLLECTOR', `${this.#target} accepted the ${this.#noun}s with a warning: ${message}`, this.#target)
    if (outcome.format === 'other') {
      this.#sharedReport.warn('LT_WARN_RESPONSE_TYPE', `${this.#target} does not answer in OTLP: is it a collector? The ${this.#noun}s count as delivered`, this.#target)
    }
    if (spans > rejected && this.#shared.isOutage) this.#recovered()
  }

  thinned (spans, level) {
    const shared = this.#shared
    shared.thinLevel = Math.max(shared.thinLevel, level)
    this.#lose(spans)
    this.#loss('thinned', spans, (sum) => `the buffer is full: ${counted(sum, this.#noun)} dropped as whole traces; the rest carry an adjusted sampling threshold (each now represents up to ${2 ** shared.thinLevel} times as many)`)
  }

  evicted (spans) {
    this.#lose(spans)
    this.#loss('queue_full', spans, (sum) => `the buffer is full: ${counted(sum, this.#noun)} dropped, the oldest first`)
  }

  notThinned (error) { this.#report.failed('LT_WARN_BUG', `a chunk of ${this.#noun}s could not be thinned`, error) }

  cut (bytes, bytesMax) {
    this.#report.warn('LT_WARN_SPAN_CUT', `a span of ${bytes} bytes exceeds the limit of ${bytesMax} (4 MiB, or half of buffer.maxBytes): its largest attributes, events and links were dropped`)
  }

  tooLarge (bytes, bytesMax) {
    this.#loss('too_large', 1, (sum) => `${counted(sum, this.#noun)} dropped: ${this.#noun === 'span' ? 'name and status alone exceed' : 'longer than'} ${bytesMax} bytes (the last one has ${bytes})`)
  }

  notEncoded (error) { this.#report.failed('LT_WARN_BUG', `a ${this.#noun} could not be encoded`, error) }

  undelivered (spans) {
    this.#loss('shutdown', spans, (sum) => `${counted(sum, this.#noun)} not delivered to ${this.#target} before the application closed, which waits at most buffer.closeTimeoutMs (${this.#lastError})`)
  }

  undeliveredAtExit (spans) {
    this.#loss('exit', spans, (sum) => `the process exits with ${counted(sum, this.#noun)} not delivered to ${this.#target} (${this.#lastError})`)
  }

  get #lastError () { return this.#stats.lastError ?? 'no answer in time' }

  #lose (spans) {
    this.#shared.lostInOutage += spans
    this.#shared.isOutage = true
  }

  #recovered () {
    const { lostInOutage } = this.#shared
    const message = `${this.#target} accepts ${this.#noun}s again; ${counted(lostInOutage, this.#noun)} lost during the outage`
    for (const kind of ['collector', 'thinned', 'queue_full']) if (this.#sharedReport.recovered(kind, message)) break
    this.#shared.lostInOutage = this.#shared.thinLevel = 0
    this.#shared.isOutage = false
  }

  #loss (kind, spans, messageOf) {
    const { lost } = this.#shared
    const sum = (lost.get(kind) ?? 0) + spans
    lost.set(kind, this.#sharedReport.warn('LT_WARN_LOSS', messageOf(sum), kind) ? 0 : sum)
  }
}

function sharedOf (target) {
  const { collectorLogs } = processState
  if (!collectorLogs.has(target)) {
    if (collectorLogs.size >= COLLECTORS_MAX) collectorLogs.delete(collectorLogs.keys().next().value)
    collectorLogs.set(target, new CollectorLog())
  }
  return collectorLogs.get(target)
}

function failureOf ({ error, status, message }) {
  if (error === null) return `HTTP status ${status}${message === '' ? '' : `: ${message}`}`
  return error.message.includes(error.code) ? error.message : `${error.code}: ${error.message}`
}

/** Returns a hint if the exporter's URL seems to lead to something other than an OTLP receiver: '' or a clause after a semicolon. */
function hintOf ({ error, status, format, message = '' }, { port, pathname }) {
  const known = PORTS.get(port)
  // A server that speaks HTTP/2 from the first byte is most likely the gRPC port.
  if (error?.code === 'EBADMSG' || format === 'grpc') return `; OTLP over HTTP usually uses port 4318; ${known ?? '4317 is gRPC'}`
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(error?.code)) return '; that port does not speak TLS: use http: instead of https:?'
  if (error !== null) return ''
  if (status === 400 && /\bHTTPS\b/.test(message)) return '; that port speaks TLS: use https:'
  if (status === 401 || status === 403) return '; set credentials in exporter.headers or OTEL_EXPORTER_OTLP_HEADERS'
  if (status === 407) return "; put the user and password in the proxy's URL"
  if (status > 300 && status < 309) return '; redirects are not followed: use the final URL, often https:'
  const at = known === undefined ? '' : `; ${known}`
  if (format === 'html') return `; the answer is a web page: OTLP over HTTP usually uses port 4318 and path /v1/traces${at}`
  if (status < 404 || status > 405) return ''
  if (at !== '') return `; OTLP over HTTP usually uses port 4318${at}`
  if (!/\/v1\/(?:traces|metrics|logs)$/.test(pathname)) return '; the OTLP path for traces is usually /v1/traces'
  if (pathname.endsWith('/v1/traces/v1/traces')) return '; the path has /v1/traces twice: leave it out of OTEL_EXPORTER_OTLP_ENDPOINT'
  return `; does the path need a prefix, as in /otlp${pathname.slice(pathname.lastIndexOf('/v1/'))}?`
}

module.exports = { hintOf, ExportLog }
