'use strict'

// Delivers the spans or log records of an encoder to the collector, with a buffer that the encoder fills, a sender that empties it, and a
// flush timer.

const { writeSync } = require('node:fs')
const { NO_CHUNK, Budget, ChunkBuffer } = require('./chunk-buffer.js')
const { ChunkCompressor } = require('./compressor.js')
const { Sender } = require('./sender.js')
const { OtlpHttp } = require('./http/otlp-http.js')
const { ExportLog } = require('./log.js')
const { DURATION_MAX_MS } = require('../config/checks.js')
const { shrinkerOf } = require('../features.js')
const { setTimeout, clearTimeout, setImmediate } = require('../runtime/timers.js')
const { counted } = require('../runtime/report.js')

// The first flush is early, so that the first spans, or a mistake in the exporter's options, show up soon. Then the delay doubles up to
// `flushDelayMs`. An early connection also saves V8 a second compilation of Node's streams.
const FIRST_FLUSH_DELAY_MS = 2

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
  #thinnedSpans = 0
  #thinLevel = 0
  #waiters = [] // { target, resolve, timer, isOnce } of each pending flush
  #closing = null // the promise of `close`
  #finish = null

  // `noun`: what is sent. `areThinned`: whether a full buffer may be thinned, as with spans. `optional`: see ExportLog. `http` and
  // `budget`: those of another exporter of the application, to share them.
  constructor ({ settings, prefix, stats, report, suppress = (fn) => fn(), noun = 'span', areThinned = false, optional = null, http = null, budget = new Budget(settings.buffer.maxBytes) }) {
    this.#settings = settings
    this.#stats = stats
    this.#suppress = suppress
    this.#log = new ExportLog(report, stats, settings.exporter, noun, optional)
    this.#http = http ?? new OtlpHttp(settings.exporter, suppress)
    this.noun = noun
    this.budget = budget
    const onGone = (spans, level) => this.#onGone(spans, level)
    const makeShrinker = (buffer) => report.attempt('LT_WARN_BUG', 'a full buffer cannot be thinned', () => shrinkerOf(buffer, onGone, (error) => this.#log.notThinned(error)))
    this.#buffer = new ChunkBuffer(budget, settings.batch?.maxSpans, onGone, areThinned ? makeShrinker : null)
    this.#compressor = new ChunkCompressor(this.#buffer, prefix)
    this.#sender = new Sender({
      buffer: this.#buffer,
      http: this.#http,
      prefix,
      stats,
      log: this.#log,
      compressor: this.#compressor,
      onCompleted: (isUnreachable) => this.#onCompleted(isUnreachable)
    })
  }

  // Returns a chunk with `byteCount` free bytes after `chunk.length`. Returns null if the span cannot be kept, which it then counts, or if
  // `isLong(byteCount)` and the bytes are an estimate (not `isCounted`). The caller must call `commit` in the same turn.
  // HOT, once per span. Budget: 0 objects.
  reserve (byteCount, isCounted = false) {
    const chunk = this.#buffer.open
    if (chunk.length + byteCount <= chunk.capacity) return chunk
    return this.isLong(byteCount) && !isCounted ? null : this.#renew(byteCount)
  }

  // Whether a span is longer than a chunk. An estimate is not good enough to take so much of the buffer, or to drop the span.
  isLong (byteCount) { return byteCount > this.#buffer.chunkBytes }

  // The limit for one span, including its scope.
  get spanBytesMax () { return this.#buffer.spanBytesMax }

  logCut (byteCount) { this.#log.cut(byteCount, this.spanBytesMax) }

  dropTooLarge (byteCount) {
    this.#stats.drop('too_large', 1)
    this.#log.tooLarge(byteCount, this.spanBytesMax)
  }

  dropFailed (error) {
    this.#stats.drop('not_encoded', 1)
    this.#log.notEncoded(error)
  }

  // Keeps the span that was written up to offset `end`. HOT, once per span. Budget: 0 objects.
  commit (chunk, end) {
    chunk.length = end
    chunk.spans++
    if (this.#flushTimer === null) this.#suppress(this.#armFlush)
    if (chunk.spans < this.#buffer.spansMax) return
    this.#buffer.seal()
    this.#schedule()
  }

  // The number of waiting spans: in the open chunk and in sealed chunks, compressed or not.
  get queued () { return this.#buffer.open.spans + this.#buffer.sealedSpans }
  get inFlight () { return this.#sender.inFlight }
  /** Whether another chunk would take more than half of the memory. The recorder then holds back spans that are not urgent. */
  get isFilling () { return this.bufferBytes + this.#buffer.chunkBytes > this.#buffer.bytesMax / 2 }
  /** Whether the server has recently answered that it does not accept this signal. */
  get isAbsent () { return this.#http.isAbsent }
  get bufferBytes () { return this.budget.bytes }

  // Returns an OtlpHttp over the same connection, or null if `exporter` has another server or other certificates.
  shareConnection (exporter) {
    if (this.#closing !== null) return null
    const own = this.#settings.exporter
    const hasSameFiles = own.ca === exporter.ca && own.cert === exporter.cert && own.key === exporter.key
    return hasSameFiles && new URL(own.url).origin === new URL(exporter.url).origin ? this.#http.share(exporter) : null
  }

  // Resolves when everything that is buffered now has been sent or dropped, when the collector is unreachable, or after `timeoutMs`. Never
  // rejects. With `isFrozenNext` it also resolves after the first failed attempt, and immediately while the collector asks for a pause.
  flush (options) {
    if (this.#closing !== null) return this.#closing
    if (this.#isEmpty()) return Promise.resolve()
    const timeoutMs = options?.timeoutMs >= 0 ? Math.min(options.timeoutMs, DURATION_MAX_MS) : this.#settings.closeTimeoutMs
    return new Promise((resolve) => {
      const isOnce = options?.isFrozenNext === true
      const waiter = { target: this.#sender.completed + this.queued + this.inFlight, isOnce, resolve, timer: null }
      waiter.timer = setTimeout(() => this.#endWaiter(waiter), timeoutMs)
      this.#waiters.push(waiter)
      this.#http.hold(true, isOnce)
      this.#suppress(() => {
        this.#disarmFlush()
        this.#sender.retryNow()
        this.#sender.sendAll()
      })
      if (isOnce && this.#sender.isWaiting) this.#endWaiter(waiter)
    })
  }

  // Makes one attempt to send everything buffered, within `closeTimeoutMs`. Spans that end later are dropped. Idempotent. Never rejects.
  close () {
    return (this.#closing ??= new Promise((resolve) => this.#suppress(() => this.#close(resolve))))
  }

  flushBeforeExit () {
    this.flush().then(() => this.queued > 0 && this.#log.undeliveredAtExit(this.queued))
  }

  // The number of spans that a crash loses, for the line that it logs; 0 if warnings are silenced.
  get lostInCrash () {
    return ['none', 'error'].includes(this.#settings.logLevel) ? 0 : this.queued + this.inFlight
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

  // Sends and logs later, so as not to delay the request that happened to fill the chunk.
  #schedule () {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#suppress(this.#scheduleNext)
  }

  // These functions are created once, so that no request creates a closure for `suppress`.
  #scheduleNext = () => setImmediate(this.#onScheduled)
  #onScheduled = () => {
    this.#isScheduled = false
    this.#sender.retryIfFilling()
    this.#sender.pump()
    this.#compressor.consider()
    if (this.#thinnedSpans > 0) this.#log.thinned(this.#thinnedSpans, this.#thinLevel)
    if (this.#evictedSpans > 0) this.#log.evicted(this.#evictedSpans)
    this.#thinnedSpans = this.#evictedSpans = this.#thinLevel = 0
  }

  #armFlush = () => {
    const delayMs = Math.min(this.#flushDelayMs, this.#settings.buffer.flushDelayMs)
    this.#flushDelayMs = Math.min(delayMs * 2, DURATION_MAX_MS)
    this.#flushTimer = setTimeout(this.#onFlushTimer, delayMs).unref()
    flushAtExit(this)
  }

  #onFlushTimer = () => {
    this.#flushTimer = null
    this.#sender.sendAll()
    this.#buffer.trim()
    this.#forgetIfEmpty()
  }

  // The next span arms the timer again, together with the flush at exit.
  #disarmFlush () {
    clearTimeout(this.#flushTimer)
    this.#flushTimer = null
  }

  // Counts spans that were dropped by thinning to `level`, or with their whole chunk if it is 0.
  #onGone (spans, level) {
    if (level === 0) {
      this.#stats.drop('queue_full', spans)
      this.#evictedSpans += spans
    } else {
      this.#stats.thinned += spans
      this.#thinnedSpans += spans
      this.#thinLevel = Math.max(this.#thinLevel, level)
    }
    this.#sender.completed += spans // flushes no longer wait for them
    this.#schedule()
  }

  // Runs after every attempt, before the next one starts.
  #onCompleted (isUnreachable) {
    for (const waiter of this.#waiters.slice()) {
      const hasFailed = isUnreachable || (waiter.isOnce && this.#sender.isWaiting)
      if (hasFailed || this.#sender.completed >= waiter.target) this.#endWaiter(waiter)
    }
    this.#forgetIfEmpty()
    if (this.#finish !== null && this.#isEmpty()) this.#finish()
  }

  #isEmpty () { return this.queued + this.inFlight === 0 }

  // While the flush timer runs, spans may arrive that need the flush at exit.
  #forgetIfEmpty () {
    if (this.#flushTimer === null && this.#isEmpty()) forgetAtExit(this, false)
  }

  #endWaiter (waiter) {
    clearTimeout(waiter.timer)
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
    if (this.#waiters.length === 0 && this.#closing === null) this.#http.hold(false)
    waiter.resolve()
  }

  #close (resolve) {
    this.#disarmFlush()
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

// Limits of waiting: a deadline for a user's promise, and the last flush of a process that is about to exit.

/**
 * Waits for a user's promise, but at most `timeoutMs`. Never rejects.
 * @param {() => unknown} start may throw, return nothing, or a promise that never settles
 * @param {boolean} [holdsProcess] false: the process may exit meanwhile
 * @returns {Promise<undefined | Error>} the error, or undefined if it settled in time
 */
async function settleWithin (start, timeoutMs, holdsProcess = true) {
  let timer
  const deadline = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${timeoutMs} ms`)), timeoutMs)
    if (!holdsProcess) timer.unref()
  })
  try {
    await Promise.race([start(), deadline])
  } catch (error) {
    return error ?? new Error('rejected')
  } finally {
    clearTimeout(timer)
  }
}

// Exporters with waiting spans. All copies of this package in the process share the set. A test runner that reloads modules creates
// several copies.
const kWaiting = Symbol.for('light-trace.exitFlush')
const waiting = process[kWaiting] ?? new Set()
if (process[kWaiting] === undefined) Object.defineProperty(process, kWaiting, { value: waiting })

// Flushes an exporter before the process exits, because light-trace does not keep a process alive that has finished its work. One
// `beforeExit` listener serves all exporters. It calls `exporter.flushBeforeExit()` at most once per call of this function.
function flushAtExit (exporter) {
  waiting.add(exporter)
  if (waiting.listener !== undefined) return
  process.on('beforeExit', waiting.listener = onBeforeExit)
  process.on('uncaughtExceptionMonitor', waiting.crashListener = onCrash)
}

// The listeners are removed when the last exporter closes. Removing them after each POST would cost more than everything else here.
function forgetAtExit (exporter, isClosed = true) {
  waiting.delete(exporter)
  if (!isClosed || waiting.size > 0 || waiting.listener === undefined) return
  process.off('beforeExit', waiting.listener)
  process.off('uncaughtExceptionMonitor', waiting.crashListener)
  waiting.listener = undefined
}

// The flush keeps the process alive. After it Node emits `beforeExit` again, and only exporters with new spans are in the set by then.
function onBeforeExit () {
  for (const exporter of [...waiting]) {
    forgetAtExit(exporter)
    exporter.flushBeforeExit()
  }
}

// Logs what a crash loses. Writes to stderr synchronously, because a logger or a process warning would be too late.
function onCrash () {
  if (process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()) return // the process continues
  const lost = new Map()
  for (const { noun = 'span', lostInCrash = 0 } of waiting) if (lostInCrash > 0) lost.set(noun, (lost.get(noun) ?? 0) + lostInCrash)
  if (lost.size === 0) return
  try {
    const what = [...lost].map(([noun, count]) => counted(count, noun)).join(' and ')
    writeSync(2, `(light-trace) [LT_WARN_LOSS] the process crashes, with ${what} not delivered\n`)
  } catch {} // stderr is closed
}

module.exports = { Exporter, settleWithin, flushAtExit, forgetAtExit }
