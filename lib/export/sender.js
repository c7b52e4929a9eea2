'use strict'

// Sends sealed chunks to the collector, oldest first, one request at a time. Keeps the chunks that failed.
//
//    idle --pump--> busy --retry--> waiting --timer, retryNow--> idle
//                     '--any other disposition, see http/retry.js--> idle

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers.js')
const { RetrySchedule } = require('./http/retry.js')

// A request costs 100 to 200 microseconds, whatever its size. Spread over a megabyte, about 2,000 spans, that is less than 0.1
// microseconds a span.
const SEND_BYTES = 1024 * 1024
// Writing a megabyte to a socket blocks the event loop for 0.2 to 0.3 ms. Much more at once would be noticeable.
const REQUEST_BYTES_MAX = 2 * 1024 * 1024

class Sender {
  #buffer
  #http
  #prefix
  #stats
  #log
  #compressor
  #onCompleted
  #schedule
  #sendBytes
  #requestBytesMax
  #state = 'idle' // or 'busy' or 'waiting'
  #batch = []
  #timer = null
  #dueAt = 0
  #isDue = false // the buffered spans are to be sent, however few they are
  #isClosing = false
  #startedClosing = false // the current request was started while closing
  #isGivenUp = false
  inFlight = 0
  completed = 0 // spans that have left the buffer for good, delivered or not

  constructor ({ buffer, http, prefix, stats, log, compressor, onCompleted }) {
    this.#buffer = buffer
    this.#http = http
    this.#prefix = prefix
    this.#stats = stats
    this.#log = log
    this.#compressor = compressor
    this.#onCompleted = onCompleted
    this.#schedule = new RetrySchedule(buffer.bytesMax)
    this.#sendBytes = Math.min(SEND_BYTES, buffer.bytesMax / 4)
    this.#requestBytesMax = Math.min(REQUEST_BYTES_MAX, buffer.bytesMax / 2)
  }

  get isWaiting () { return this.#state === 'waiting' }

  sendAll () {
    this.#isDue = true
    this.pump()
  }

  pump () {
    if (this.#state !== 'idle' || (!this.#isDue && this.#buffer.sealedBytes < this.#sendBytes)) return
    const batch = this.#takeBatch()
    if (batch.length > 0) this.#send(batch)
  }

  // Ends a wait early, unless the collector asked for the wait.
  retryNow () {
    if (this.#state === 'waiting' && !this.#schedule.isAsked) this.#endWait()
  }

  // Retries earlier if new spans fill the buffer or replace its content.
  retryIfFilling () {
    if (this.#state !== 'waiting') return
    const dueAt = this.#schedule.dueAt(this.#buffer.bytesWritten)
    if (dueAt < this.#dueAt) this.#waitUntil(dueAt)
  }

  // From now on each chunk gets one more attempt, without waiting.
  startClosing () {
    this.#isClosing = this.#isDue = true
    if (this.#state === 'waiting') this.#endWait()
    else this.pump()
  }

  // The deadline has passed: everything queued and in flight is lost.
  giveUp () {
    this.#isGivenUp = true
    this.#dropAll()
    this.#http.abort()
    if (this.#state === 'idle') this.#onCompleted(false)
  }

  #takeBatch () {
    const buffer = this.#buffer
    // After a failure only one chunk is sent: cheap if the collector does not answer, gentle if it is overloaded.
    const bytesMax = this.#schedule.hasFailed && !this.#isClosing ? 1 : this.#requestBytesMax
    // A partly filled chunk is sent only if no older chunk is left behind. Otherwise it can keep filling.
    if (this.#isDue && (buffer.sealedChunks === 0 || buffer.sealedBytes + buffer.open.length <= bytesMax)) buffer.seal()
    const batch = buffer.take(bytesMax)
    if (buffer.sealedChunks === 0 && buffer.open.spans === 0) this.#isDue = false
    return batch
  }

  #send (batch) {
    this.#state = 'busy'
    this.#batch = batch
    this.#startedClosing = this.#isClosing
    this.#schedule.attempted(this.#buffer.bytesWritten)
    for (const chunk of batch) {
      this.inFlight += chunk.spans
      if (chunk.attempts++ > 0) this.#stats.retried += chunk.spans
    }
    const [{ body }] = batch
    const onOutcome = (outcome) => this.#onOutcome(outcome)
    if (body !== null) this.#http.post([body], 'gzip', onOutcome) // compressed: a whole body, alone in its batch
    else this.#http.post([this.#prefix.head(bytesOf(batch)), ...batch.map(({ bytes, length }) => bytes.subarray(0, length))], '', onOutcome)
  }

  #onOutcome (outcome) {
    if (outcome.wasResent) this.#stats.retried += this.inFlight
    const [chunk] = this.#batch
    // 415: the server does not accept gzip, against the specification. 413: it may measure the decompressed size.
    const isTooMuch = outcome.status === 413
    if (chunk.body === null || !(isTooMuch || outcome.status === 415) || this.#isGivenUp) return this.#finish(outcome)
    if (!isTooMuch) this.#compressor.stop()
    this.#compressor.decompress(chunk, (hasWorked) => {
      // The decompressed chunk is halved now after 413, or sent again whole after 415.
      if (!hasWorked) outcome.disposition = 'refused'
      else if (!isTooMuch) outcome.disposition = 'again'
      this.#finish(outcome)
    })
  }

  #finish (outcome) {
    const batch = this.#batch
    const spans = this.inFlight
    this.#batch = []
    this.#state = 'idle'
    this.inFlight = 0
    this.#complete(outcome, batch, spans)
    this.#onCompleted(outcome.isUnreachable)
    this.pump()
  }

  #complete (outcome, batch, spans) {
    const { disposition } = outcome
    if (disposition === 'delivered') return this.#onDelivered(outcome, batch, spans)
    this.#log.failed(outcome)
    const isFinal = disposition === 'refused' || disposition === 'misdirected'
    if (disposition === 'retry' || (this.#isGivenUp && !isFinal)) this.#onRetry(outcome, batch, spans)
    else if (disposition === 'again') this.#sendAgain(batch)
    else if (disposition !== 'split' || !this.#makeSmaller(batch)) this.#onRefused(outcome, batch, spans)
  }

  // After 413: sends half as much immediately, and never more than that from now on. Cuts a single chunk in two, down to one span.
  #makeSmaller (batch) {
    const smaller = batch.length > 1 ? batch : this.#buffer.halve(batch[0])
    if (smaller === null) return false
    this.#requestBytesMax = Math.min(this.#requestBytesMax, Math.floor(bytesOf(batch) / 2))
    this.#sendAgain(smaller)
    return true
  }

  #sendAgain (batch) {
    this.#buffer.putBack(batch)
    this.#isDue = true
  }

  #onDelivered (outcome, batch, spans) {
    this.completed += spans
    this.#schedule.delivered()
    this.#buffer.release(batch, outcome.isUploaded)
    this.#log.delivered(outcome, spans)
  }

  #onRetry (outcome, batch, spans) {
    if (this.#isClosing) return this.#onRetryWhileClosing(outcome, batch, spans)
    this.#sendAgain(batch)
    this.#log.willRetry(outcome, this.#buffer.sealedSpans + this.#buffer.open.spans)
    this.#waitUntil(this.#schedule.failed(outcome, monotonicNow(), Math.random()))
  }

  #onRetryWhileClosing (outcome, batch, spans) {
    if (!this.#startedClosing && !outcome.isUnreachable) return this.#buffer.putBack(batch)
    this.#drop('shutdown_deadline', spans)
    this.#buffer.release(batch, false)
    if (outcome.isUnreachable) this.#dropAll()
  }

  #onRefused (outcome, batch, spans) {
    this.completed += spans
    this.#buffer.release(batch, outcome.isUploaded)
    this.#log.refused(outcome, spans)
  }

  #dropAll () {
    this.#startedClosing = true // spans in flight get no further attempt
    this.#buffer.seal()
    const spans = this.#buffer.clear()
    if (spans > 0) this.#drop('shutdown_deadline', spans)
  }

  #drop (reason, spans) {
    this.completed += spans
    this.#stats.drop(reason, spans)
  }

  #waitUntil (dueAt) {
    clearTimeout(this.#timer)
    this.#state = 'waiting'
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => this.#endWait(), Math.max(1, dueAt - monotonicNow())).unref()
  }

  #endWait () {
    clearTimeout(this.#timer)
    this.#state = 'idle'
    this.pump()
  }
}

function bytesOf (batch) {
  return batch.reduce((sum, { length }) => sum + length, 0)
}

module.exports = { Sender }
