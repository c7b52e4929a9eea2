'use strict'

// Takes sealed chunks to the collector, oldest first, one request at a time, and keeps what failed.
//
//    idle --pump--> busy --retry--> waiting --timer, retryNow--> idle
//                     '--any other disposition, see http/retry.js--> idle

const { setTimeout, clearTimeout, monotonicNow } = require('../runtime/timers.js')
const { RetrySchedule } = require('./http/retry.js')

// A request costs 100 to 200 microseconds whatever its size: of a megabyte, some 2,000 spans, less than a tenth of one for each.
const SEND_BYTES = 1024 * 1024
// Writing a megabyte to a socket takes the loop 0.2 to 0.3 ms; much more at once would be felt.
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
  #isDue = false // something is old enough to be sent, however little it is
  #isClosing = false
  #startedClosing = false // the request under way is an attempt of the close
  #isGivenUp = false
  inFlight = 0
  completed = 0 // spans that left for good, delivered or not

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

  // Ends a wait early, unless the collector asked for it.
  retryNow () {
    if (this.#state === 'waiting' && !this.#schedule.isAsked) this.#endWait()
  }

  // Brings an attempt forward if the buffer fills up, or turns over.
  retryIfFilling () {
    if (this.#state !== 'waiting') return
    const dueAt = this.#schedule.dueAt(this.#buffer.bytesWritten)
    if (dueAt < this.#dueAt) this.#waitUntil(dueAt)
  }

  // From here each chunk gets one more attempt and nothing waits.
  startClosing () {
    this.#isClosing = this.#isDue = true
    if (this.#state === 'waiting') this.#endWait()
    else this.pump()
  }

  // The deadline has come: what is queued and in flight is lost.
  giveUp () {
    this.#isGivenUp = true
    this.#dropAll()
    this.#http.abort()
    if (this.#state === 'idle') this.#onCompleted(false)
  }

  #takeBatch () {
    const buffer = this.#buffer
    // After a failure it asks with one chunk: cheap if nobody answers, gentle if the collector is overloaded.
    const bytesMax = this.#schedule.hasFailed && !this.#isClosing ? 1 : this.#requestBytesMax
    // A partly filled chunk goes only if nothing older is left behind; else it may as well go on filling.
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
    if (body !== null) this.#http.post([body], 'gzip', onOutcome) // compressed: it is alone, and whole
    else this.#http.post([this.#prefix.head(bytesOf(batch)), ...batch.map(({ bytes, length }) => bytes.subarray(0, length))], '', onOutcome)
  }

  #onOutcome (outcome) {
    if (outcome.wasResent) this.#stats.retried += this.inFlight
    const [chunk] = this.#batch
    // A server that takes no gzip, against the specification, or that measures what it inflates to.
    const isTooMuch = outcome.status === 413
    if (chunk.body === null || !(isTooMuch || outcome.status === 415) || this.#isGivenUp) return this.#finish(outcome)
    if (!isTooMuch) this.#compressor.stop()
    this.#compressor.decompress(chunk, (hasWorked) => {
      // Plain, it is cut in two right away at 413, and goes as it is at 415.
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

  // After 413: half as much at once, and no more than that from now on; a single chunk is cut in two, down to one span.
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
    this.#startedClosing = true // what is in flight gets no further attempt
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
