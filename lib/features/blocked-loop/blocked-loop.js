'use strict'

// Which line blocked the event loop, and which requests waited for it. Loaded only where `slow.blockedLoop` asks for it.
//
//   main thread:  a beat in shared memory, by a timer while requests are open, and by each request that starts
//   worker:       late by afterMs? It makes the main thread run `sample` below, again and again, until the beat is back
//   main thread:  the line that ran, or that native code ran before, becomes an event on the spans of the requests that were open
//
// `sample` is called by way of the inspector, whose commands V8 runs between two lines of JavaScript that does not come to an end.
// No profiler: to start V8's takes the main thread 75 to 160 ms, and where native code blocks the loop (JSON.parse, pbkdf2Sync)
// it starts when all is over. A command that waited for native code runs at the first call after it.

const { randomBytes } = require('node:crypto')
const { Worker, isMainThread } = require('node:worker_threads')
const { Stacks } = require('./blocked-line.js')
const { PROGRAM } = require('./blocked-loop-program.js')
const { takeSample } = require('../accounts.js')
const { guarded } = require('../../runtime/process-state.js')
const { clearTimeout, now, setTimeout } = require('../../runtime/timers.js')
const { read } = require('../../span/attributes.js')

const inspector = process.features.inspector === true ? require('node:inspector') : null // Node can be built without

// One for the process, whatever copies of this package it has: the worker's command finds it by this name.
const NAME = 'light-trace.blocked-loop.3'
const KEY = Symbol.for(NAME)

const ROOM_MIN = 64
const OPEN_MAX = 1000 // requests of an application; of more, the oldest are forgotten
const LOGGED_PER_MINUTE = 6
const MINUTE_MS = 60_000

// The timer ends when nothing has come for so long, or, with requests open that may be streams, for so much longer.
const IDLE_MS = 2000
const STREAM_MS = 60_000

// Of afterMs. Sooner takes more CPU; later, more short blocks are looked into, only to find that they are short.
const BEAT_PART = 2 / 3

// A debugger may go again: with a request, so often at most, it is seen whether it has.
const AGAIN_MS = 1000

// The worker looks up every 100 ms at least while it samples; if it has not for longer, the whole process stood still.
const TICK_MAX_MS = 150

// The worker needs 4 to 5 MB for Node's own start.
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 4, stackSizeMb: 1 }

// The words of the shared memory. Times are milliseconds of the main thread's clock, of which 32 bits are kept.
const BEAT = 0 // the last sign of life, or when the process went on after it had been stopped
const AWAKE = 1 // 1: there is a timer, 0: there is none, -1: the worker is to end
const BLOCKED = 2 // set by the worker, taken back by the main thread
const ASKED_AT = 3 // when the command was sent that has not run yet, or 0
const TICK = 4 // when the worker last looked up
const CONNECTED = 5 // whether the worker has a session
const WORDS = 6

/** What the process has in common: one worker, however many applications ask. */
class LoopWatch {
  #apps = new Set()
  #words = newWords()
  #worker = null
  #timer = null
  #afterMs = Infinity
  #againAt = Infinity // when a debugger may have gone
  #beat = null // the sample of the timer's last beat
  #startedAt = -Infinity // the last request
  #stacks = new Stacks()
  #logged = [] // times, of the last minute
  #onExit = () => this.#stop()

  add (app) {
    this.#apps.add(app)
    this.#follow()
  }

  delete (app) {
    if (this.#apps.delete(app)) this.#follow()
  }

  /** Watches by the lowest threshold of all applications. */
  #follow () {
    const afterMs = Math.min(...[...this.#apps].map((app) => app.afterMs))
    if (this.#worker !== null && afterMs === this.#afterMs) return
    this.#afterMs = afterMs
    this.#againAt = Infinity
    this.#stop()
    if (this.#apps.size > 0) this.#start()
  }

  #start () {
    const why = refusal()
    if (why !== null) return this.#refuse(why)
    const origin = Number(process.hrtime.bigint()) / 1e6 - now()
    this.#words = newWords() // another worker may just be ending
    try {
      // With neither the application's preloads nor its variables.
      const worker = new Worker(PROGRAM, {
        eval: true,
        name: 'light-trace',
        execArgv: [],
        env: {},
        resourceLimits: RESOURCE_LIMITS,
        workerData: { words: this.#words, origin, afterMs: this.#afterMs, command: `globalThis[Symbol.for('${NAME}')]?.sample()` }
      })
      worker.on('error', (/** @type {any} */ error) => {
        if (worker === this.#worker) this.#refuse(error?.message)
      })
      worker.unref()
      this.#worker = worker
    } catch (error) {
      return this.#refuse(error?.message)
    }
    process.on('exit', this.#onExit)
    this.#timer = setTimeout(guarded(() => this.#onTimer()), Math.ceil(this.#afterMs * BEAT_PART)).unref()
    this.#onTimer()
  }

  #stop () {
    if (this.#worker === null) return
    process.removeListener('exit', this.#onExit)
    clearTimeout(this.#timer)
    this.#tell(AWAKE, -1)
    this.#tell(BLOCKED, 0)
    // Else Node would say at the exit that it waits for a debugger.
    Atomics.wait(this.#words, CONNECTED, 1, TICK_MAX_MS)
    this.#worker.terminate()
    this.#worker = null
  }

  #refuse (why) {
    this.#stop()
    this.#againAt = isDebugged() ? now() + AGAIN_MS : Infinity
    for (const { tracer } of this.#apps) tracer.report.warn('LT_WARN_BLOCKED_LOOP', `slow.blockedLoop has no effect: ${why}`)
  }

  #tell (word, value) {
    Atomics.store(this.#words, word, value)
    Atomics.notify(this.#words, word)
  }

  /** A request starts. HOT, once per request where the option is on. */
  started (start) {
    if (this.#worker === null) {
      if (start < this.#againAt) return
      this.#start()
      if (this.#worker === null) return
    }
    this.#lives(start)
    this.#startedAt = start
    if (this.#words[AWAKE] === 0) this.#onTimer()
  }

  /** A request ends, maybe in the turn that was blocked: later its span could take no event. */
  ended () {
    if (this.#words[BLOCKED] === 1) this.#lives(now())
  }

  #lives (at) {
    if (this.#words[BLOCKED] === 1) this.#back(at)
    else Atomics.store(this.#words, BEAT, at | 0)
  }

  #onTimer () {
    this.#lives(now())
    this.#beat = takeSample()
    if (isDebugged()) return this.#refuse('a debugger may be attached')
    const isOpen = [...this.#apps].some((app) => app.requests.some(isUnderWay))
    const isAwake = this.#beat.at - this.#startedAt < (isOpen ? STREAM_MS : IDLE_MS)
    if (isAwake) this.#timer.refresh()
    if (isAwake !== (this.#words[AWAKE] === 1)) this.#tell(AWAKE, isAwake ? 1 : 0)
  }

  /**
   * Sees what the main thread runs and for which request. Called by the worker's command, between any two lines of the
   * application or in the middle of its regular expression: it reads, throws nothing, and has no regular expression of its own.
   */
  sample () {
    try {
      const at = now()
      if (this.#words[BLOCKED] === 1) this.#stacks.take(this.sample, at, this.#since(ASKED_AT, at))
    } catch {
      // Such as a frozen Error: the line stays unknown.
    } finally {
      Atomics.store(this.#words, ASKED_AT, 0)
    }
  }

  #since (word, at) { return (at | 0) - this.#words[word] | 0 }

  /** The loop is back. */
  #back (at) {
    const [unbeatenMs, untickedMs] = [this.#since(BEAT, at), this.#since(TICK, at)]
    Atomics.store(this.#words, BEAT, at | 0)
    this.#tell(BLOCKED, 0) // what follows is not to be seen
    const block = this.#blockUntil(at, unbeatenMs, untickedMs)
    this.#stacks = new Stacks()
    if (block === null) return
    for (const app of this.#apps) {
      if (block.duration < app.afterMs) continue
      for (const record of app.requests.filter(isUnderWay)) addEventTo(record, block, app.tracer)
      app.tracer.parts.get('keep')?.loopBlocked()
    }
    this.#log(block)
  }

  /**
   * How long the loop has been blocked, by what, and for whom: since the last sign of life, without the time
   * that it was idle in, and without that in which the whole process was stopped or had no CPU. Null where that is short, or where
   * no code was seen and little CPU was used: the process had none, which is nobody's fault in it.
   */
  #blockUntil (at, unbeatenMs, untickedMs) {
    const { idle, cpu } = takeSample()
    const end = untickedMs > TICK_MAX_MS ? at - untickedMs : at
    const active = at - this.#beat.at - (idle - this.#beat.idle)
    const duration = Math.min(end - at + unbeatenMs, active)
    const cpuTime = Math.min(cpu - this.#beat.cpu, duration)
    const { request, code } = this.#stacks.longest(duration)
    if (duration < this.#afterMs || (code === null && cpuTime < duration / 2)) return null
    return { id: randomBytes(8).toString('hex'), start: end - duration, duration, cpuTime, request, code }
  }

  #log ({ duration, cpuTime, request, code }) {
    const at = now()
    this.#logged = this.#logged.filter((loggedAt) => at - loggedAt < MINUTE_MS)
    if (this.#logged.length >= LOGGED_PER_MINUTE) return
    this.#logged.push(at)
    const used = cpuTime < duration / 2 ? ` (${Math.round(cpuTime)} ms of CPU)` : ''
    const name = read(request?.span, 'name')
    const whose = typeof name === 'string' && name !== '' ? `, in ${name}` : ''
    const [{ tracer }] = this.#apps
    const message = `the event loop was blocked for ${Math.round(duration)} ms${used}${code?.text ?? ''}${whose}`
    tracer.report.warn('LT_WARN_LOOP_BLOCKED', message)
  }
}

function newWords () {
  return new Int32Array(new SharedArrayBuffer(4 * WORDS))
}

/** Why the loop cannot be watched, or null. */
function refusal () {
  if (!isMainThread) return 'the application runs in a worker'
  if (inspector === null) return 'this Node has no inspector'
  // With --allow-worker alone `connectToMainThread` would end the process, with --permission-audit too. Node 20 and 22 know no right to
  // the inspector.
  const { permission } = process
  if (permission !== undefined && !(permission.has('worker') && permission.has('inspector'))) return 'Node\'s permission model is on, without --allow-worker and --allow-inspector'
  return isDebugged() ? 'a debugger may be attached (--inspect)' : null
}

function isDebugged () { return inspector !== null && inspector.url() !== undefined }

function addEventTo ({ apiSpan }, { id, start, duration, cpuTime, request, code }, tracer) {
  const attributes = {
    'light_trace.blocked_loop.id': id,
    'light_trace.blocked_loop.duration': duration / 1000,
    'light_trace.blocked_loop.cpu_time': cpuTime / 1000
  }
  if (request !== undefined) {
    attributes['light_trace.blocked_loop.role'] = request.span === apiSpan ? 'culprit' : 'victim'
    attributes['light_trace.blocked_loop.culprit.trace_id'] = request.traceId
    attributes['light_trace.blocked_loop.culprit.span_id'] = request.spanId
  }
  tracer.guarded(apiSpan).addEvent('light_trace.blocked_loop', { ...attributes, ...code?.attributes }, start)
}

/** One application's part of it. */
class BlockedLoop {
  #watch

  constructor (tracer) {
    this.tracer = tracer
    this.afterMs = tracer.settings.blockedLoop.afterMs
    // The records of its requests, also of some that have ended. Not a Set, for the reason at leaveConnection() in response-end.js.
    this.requests = []
    this.room = ROOM_MIN // how many until those that have ended are forgotten
    if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: new LoopWatch(), configurable: true })
    this.#watch = globalThis[KEY]
  }

  open () { this.#watch.add(this) }

  stop () {
    this.#watch.delete(this)
    this.requests = []
  }

  /** Sees each request that starts. */
  follow (requests) {
    const { watchEnd } = requests
    requests.watchEnd = (record, reply, response) => {
      this.#watch.started(record.start)
      if (this.requests.length >= this.room) this.#forgetEnded()
      this.requests.push(record)
      watchEnd.call(requests, record, reply, response)
    }
  }

  /** And each that is about to end. */
  wrapEnd (endRequest) {
    const watch = this.#watch
    return function endWatchedRequest () {
      watch.ended()
      endRequest.call(this)
    }
  }

  #forgetEnded () {
    this.requests = this.requests.filter(isUnderWay).slice(-OPEN_MAX)
    this.room = Math.max(ROOM_MIN, 2 * this.requests.length)
  }
}

function isUnderWay ({ reply }) { return reply !== null }

module.exports = { attach: (tracer) => new BlockedLoop(tracer) }
