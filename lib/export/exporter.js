'use strict'

// The way from the span encoder to the collector: a buffer that the encoder writes into, a sender that
// empties it, and the flush timer between them.

const { NO_CHUNK } = require('./chunk')
const { ChunkBuffer } = require('./chunk-buffer')
const { Sender } = require('./sender')
const { OtlpHttp } = require('./transport/otlp-http')
const { flushAtExit, forgetAtExit } = require('./exit-flush')
const { ChunkCompressor } = require('./chunk-compressor')
const { ExportLog } = require('./export-log')
const { setTimeout, clearTimeout, setImmediate } = require('../runtime/timers')

// The first spans are sent soon, so that they are seen soon, and a mistake in the exporter's options too. From then on the
// delay doubles up to `flushDelayMs`. It also shows V8 our connection while it has compiled nothing of Node's streams yet:
// what it compiles for the server's connections alone it has to give up when the first other one comes.
const FIRST_FLUSH_DELAY_MS = 2
// Above, setTimeout fires at once.
const TIMER_MAX_MS = 2 ** 31 - 1

class Exporter {
  #buffer
  #sender
  #compressor
  #http
  #stats
  #log
  #suppress
  #settings
  #flushTimer = null
  #flushDelayMs = FIRST_FLUSH_DELAY_MS
  #isScheduled = false
  #evictedSpans = 0
  #waiters = [] // { target, resolve, timer } of each flush that is not over
  #closing = null // the promise of `close`
  #finish = null

  constructor ({ settings, prefix, stats, report, suppress = (fn) => fn() }) {
    this.#settings = settings
    this.#stats = stats
    this.#suppress = suppress
    this.#log = new ExportLog(report, stats, settings.exporter.url, settings.exporter.proxy)
    this.#http = new OtlpHttp(settings.exporter, suppress)
    this.#buffer = new ChunkBuffer(settings.buffer.maxBytes, settings.batch?.maxSpans, (spans) => this.#onEvicted(spans))
    this.#compressor = new ChunkCompressor(this.#buffer, prefix, () => this.#sender.pump())
    this.#sender = new Sender({
      buffer: this.#buffer,
      http: this.#http,
      prefix,
      stats,
      log: this.#log,
      compressor: this.#compressor,
      onCompleted: (isUnreachable) => this.#onCompleted(isUnreachable),
      isGzip: settings.exporter.compression === 'gzip'
    })
  }

  // HOT, once per span. Budget: 0 objects. The chunk has `byteCount` free bytes after `chunk.length`;
  // null where the span cannot be kept, which is then counted, or where `isLong(byteCount)`. One `commit` must follow in
  // the same turn, or nothing, and the bytes are as if never written.
  reserve (byteCount) {
    const chunk = this.#buffer.open
    return chunk.length + byteCount <= chunk.capacity ? chunk : this.#reserveInNew(byteCount)
  }

  // Longer than a chunk: an estimate is not good enough to take so much of the buffer, or to give the span up.
  isLong (byteCount) {
    return byteCount > this.#buffer.chunkBytes
  }

  // The same as `reserve` for a span whose bytes were counted, of any length.
  reserveCounted (byteCount) {
    const chunk = this.#buffer.open
    return chunk.length + byteCount <= chunk.capacity ? chunk : this.#renew(byteCount)
  }

  // Of one span, with its scope.
  get spanBytesMax () {
    return this.#buffer.spanBytesMax
  }

  logCut (byteCount, valueBytesMax) {
    this.#log.cut(byteCount, this.spanBytesMax, valueBytesMax)
  }

  dropTooLarge (byteCount) {
    this.#stats.drop('too_large', 1)
    this.#log.tooLarge(byteCount, this.spanBytesMax)
  }

  // HOT, once per span. Budget: 0 objects. One whole span ends at offset `end`.
  commit (chunk, end) {
    chunk.length = end
    chunk.spans++
    if (this.#flushTimer === null) this.#suppress(this.#armFlush)
    if (chunk.spans >= this.#buffer.spansMax) this.#seal()
  }

  // Spans that wait: in the chunk being filled, sealed, and compressed.
  get queued () {
    return this.#buffer.open.spans + this.#buffer.sealedSpans
  }

  get inFlight () {
    return this.#sender.inFlight
  }

  // Allocated, for the spans that are here and for what is about to come.
  get bufferBytes () {
    return this.#buffer.bytes
  }

  // What OtlpHttp.share makes, or null where `exporter` names another server, or other certificates.
  shareConnection (exporter) {
    const own = this.#settings.exporter
    const isSame = new URL(own.url).origin === new URL(exporter.url).origin && own.ca === exporter.ca && own.cert === exporter.cert && own.key === exporter.key
    return isSame ? this.#http.share(exporter) : null
  }

  // Sends what is here now. Resolves when all of that is delivered, rejected or dropped, when nobody is there
  // to take it, or after `timeoutMs`; never rejects.
  flush (options) {
    if (this.#closing !== null) return this.#closing
    if (this.queued + this.inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const waiter = { target: this.#sender.completed + this.queued + this.inFlight, resolve, timer: null }
      waiter.timer = setTimeout(() => this.#endWaiter(waiter), durationOr(this.#settings.closeTimeoutMs, options?.timeoutMs))
      this.#waiters.push(waiter)
      this.#http.hold(true)
      this.#suppress(() => this.#sendNow())
    })
  }

  // Makes one attempt for everything that is here, waits at most `closeTimeoutMs` for it, and gives everything
  // back. Spans that end later are dropped. Idempotent; never rejects.
  close () {
    this.#closing ??= new Promise((resolve) => this.#suppress(() => this.#close(resolve)))
    return this.#closing
  }

  // For the one `beforeExit` listener of the process.
  flushBeforeExit () {
    this.flush().then(() => {
      if (this.queued > 0) this.#log.undeliveredAtExit(this.queued)
    })
  }

  // For the line that a crash leaves; who has silenced warnings has silenced it.
  get lostInCrash () {
    return this.#settings.logLevel === 'none' || this.#settings.logLevel === 'error' ? 0 : this.queued + this.inFlight
  }

  #reserveInNew (byteCount) {
    return this.isLong(byteCount) ? null : this.#renew(byteCount)
  }

  #renew (byteCount) {
    if (this.#closing !== null) return this.#drop('after_shutdown')
    const chunk = this.#buffer.renew(byteCount)
    this.#schedule()
    if (chunk === NO_CHUNK) return this.#drop('no_memory')
    return chunk ?? this.#drop('queue_full')
  }

  #drop (reason) {
    this.#stats.drop(reason, 1)
    return null
  }

  #seal () {
    this.#buffer.seal()
    this.#schedule()
  }

  // Sending is work for the loop's own time, not for the request that happened to fill the chunk; so is telling.
  #schedule () {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#suppress(this.#scheduleNext)
  }

  // Made once: `suppress` is given no new closure on the way of a request.
  #scheduleNext = () => setImmediate(this.#onScheduled)

  #onScheduled = () => {
    this.#isScheduled = false
    this.#sender.retryIfFilling()
    this.#sender.pump()
    this.#compressor.consider()
    if (this.#evictedSpans === 0) return
    this.#log.evicted(this.#evictedSpans)
    this.#evictedSpans = 0
  }

  #armFlush = () => {
    const delayMs = Math.min(this.#flushDelayMs, this.#settings.buffer.flushDelayMs)
    this.#flushDelayMs = Math.min(delayMs * 2, TIMER_MAX_MS)
    this.#flushTimer = setTimeout(this.#onFlushTimer, delayMs)
    this.#flushTimer.unref()
    flushAtExit(this)
  }

  #onFlushTimer = () => {
    this.#flushTimer = null
    this.#sender.sendAll()
    this.#buffer.trim()
    this.#forgetIfEmpty()
  }

  #sendNow () {
    // The next span arms it anew, and with it counts on the exit flush.
    clearTimeout(this.#flushTimer)
    this.#flushTimer = null
    this.#sender.retryNow()
    this.#sender.sendAll()
  }

  #onEvicted (spans) {
    this.#stats.drop('queue_full', spans)
    this.#sender.countEvicted(spans)
    this.#evictedSpans += spans
    this.#schedule()
  }

  // After every attempt, before the next one begins.
  #onCompleted (isUnreachable) {
    for (const waiter of [...this.#waiters]) {
      if (isUnreachable || this.#sender.completed >= waiter.target) this.#endWaiter(waiter)
    }
    this.#forgetIfEmpty()
    if (this.#finish !== null && this.#isEmpty()) this.#finish()
  }

  #isEmpty () {
    return this.queued + this.inFlight === 0
  }

  // While the flush timer runs more spans may come that count on the exit flush.
  #forgetIfEmpty () {
    if (this.#flushTimer === null && this.#isEmpty()) forgetAtExit(this)
  }

  #endWaiter (waiter) {
    clearTimeout(waiter.timer)
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
    if (this.#waiters.length === 0 && this.#closing === null) this.#http.hold(false)
    waiter.resolve()
  }

  #close (resolve) {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = null
    this.#buffer.seal()
    const deadline = setTimeout(() => this.#sender.giveUp(), this.#settings.closeTimeoutMs)
    this.#finish = () => {
      this.#finish = null
      clearTimeout(deadline)
      this.#compressor.stop()
      this.#http.close()
      forgetAtExit(this)
      for (const waiter of [...this.#waiters]) this.#endWaiter(waiter)
      const lost = this.#stats.dropped.shutdown_deadline
      if (lost > 0) this.#log.undelivered(lost)
      resolve()
    }
    if (this.#isEmpty()) return this.#finish()
    this.#http.hold(true)
    this.#sender.startClosing()
  }
}

function durationOr (fallback, ms) {
  return ms >= 0 ? Math.min(ms, TIMER_MAX_MS) : fallback
}

module.exports = { Exporter }
