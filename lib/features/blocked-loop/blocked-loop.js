'use strict'

// Finds the line that blocked the event loop, and the requests that waited for it. Loaded only if `slow.blockedLoop` is set.
//
//   main thread:  writes a beat to shared memory, with a timer while requests are open, and whenever a request starts
//   worker:       if the beat is afterMs late, makes the main thread run `sample` below repeatedly until the beat returns
//   main thread:  adds an event to the spans of the open requests, with the line that ran, or that ran after native code
//
// The worker calls `sample` through the inspector, whose commands V8 executes between two lines of running JavaScript. A profiler does
// not work: starting V8's takes the main thread 75 to 160 ms, and if native code blocks the loop (JSON.parse, pbkdf2Sync), it starts
// only afterwards. A command that waits for native code runs at the first call after it.

const { randomBytes } = require('node:crypto')
const { Worker, isMainThread } = require('node:worker_threads')
const { Stacks } = require('./blocked-line.js')
const { PROGRAM } = require('./blocked-loop-program.js')
const { takeSample } = require('../accounts.js')
const { guarded } = require('../../runtime/process-state.js')
const { clearTimeout, now, setTimeout } = require('../../runtime/timers.js')
const { read } = require('../../span/attributes.js')

const inspector = process.features.inspector === true ? require('node:inspector') : null // Node can be built without it

// The process has one LoopWatch, even with several copies of this package. The worker's command finds it by this name.
const NAME = 'light-trace.blocked-loop.3'
const KEY = Symbol.for(NAME)

const ROOM_MIN = 64
const OPEN_MAX = 1000 // open requests of an application; beyond that, the oldest are forgotten
const LOGGED_PER_MINUTE = 6
const MINUTE_MS = 60_000

// The timer stops when no request has started for this long; the longer time applies while requests are open, which may be streams.
const IDLE_MS = 2000
const STREAM_MS = 60_000

// The interval of the beat as a part of afterMs. A shorter one takes more CPU; with a longer one, the worker samples more blocks that
// turn out to be too short.
const BEAT_PART = 2 / 3

// After a debugger was found, requests check at most this often whether it is gone.
const AGAIN_MS = 1000

// While the worker samples, it writes a tick at least every 100 ms. If the tick is older than this, the whole process was stopped.
const TICK_MAX_MS = 150

// The worker needs 4 to 5 MB for Node's own start.
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 4, stackSizeMb: 1 }

// The words of the shared memory. Times are milliseconds of the main thread's clock, truncated to 32 bits.
const BEAT = 0 // the last beat, or when the process continued after it had been stopped
const AWAKE = 1 // 1: the timer runs, 0: it does not, -1: the worker must end
const BLOCKED = 2 // set by the worker, cleared by the main thread
const ASKED_AT = 3 // when the pending command was sent, or 0
const TICK = 4 // when the worker last woke up
const CONNECTED = 5 // whether the worker has a session
const WORDS = 6

/** Watches the loop for all applications of the process, with one worker. */
class LoopWatch {
  #apps = new Set()
  #words = newWords()
  #worker = null
  #timer = null
  #afterMs = Infinity
  #againAt = Infinity // when to check whether the debugger is gone
  #beat = null // CPU and idle time at the timer's last beat
  #startedAt = -Infinity // when the last request started
  #stacks = new Stacks()
  #logged = [] // times of log lines in the last minute
  #onExit = () => this.#stop()

  add (app) {
    this.#apps.add(app)
    this.#follow()
  }

  delete (app) {
    if (this.#apps.delete(app)) this.#follow()
  }

  /** Watches with the lowest threshold of all applications. */
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
    this.#words = newWords() // the previous worker may still be ending
    try {
      // Without the application's preloads and environment variables.
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
    // Otherwise Node would print at exit that it waits for a debugger.
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

  /** Called when a request starts. HOT, once per request where the option is on. */
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

  /** Called when a request ends. If that is in the blocked turn, the event must be added now, before its span ends. */
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
   * Records what the main thread runs and for which request. The worker's command calls it between any two lines of the application,
   * or in the middle of a regular expression. So it only reads, never throws, and uses no regular expression.
   */
  sample () {
    try {
      const at = now()
      if (this.#words[BLOCKED] === 1) this.#stacks.take(this.sample, at, this.#since(ASKED_AT, at))
    } catch {
      // For example, Error is frozen: the line stays unknown.
    } finally {
      Atomics.store(this.#words, ASKED_AT, 0)
    }
  }

  #since (word, at) { return (at | 0) - this.#words[word] | 0 }

  /** Called when the loop runs again. */
  #back (at) {
    const [unbeatenMs, untickedMs] = [this.#since(BEAT, at), this.#since(TICK, at)]
    Atomics.store(this.#words, BEAT, at | 0)
    this.#tell(BLOCKED, 0) // stops the sampling
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
   * Describes the block: its duration, its code and its request. The duration counts from the last beat, without the time in which the
   * loop was idle, or the whole process was stopped or had no CPU. Null if that is below the threshold, or if no code was seen and
   * little CPU was used: then the process got no CPU, which is not the fault of its code.
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
  // With --allow-worker alone, `connectToMainThread` would end the process, even with --permission-audit. Node 20 and 22 have no
  // permission for the inspector.
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

/** Follows the requests of one application. */
class BlockedLoop {
  #watch

  constructor (tracer) {
    this.tracer = tracer
    this.afterMs = tracer.settings.blockedLoop.afterMs
    // The records of its requests, including some that have ended. Not a Set, for the reason given at leaveConnection() in response-end.js.
    this.requests = []
    this.room = ROOM_MIN // the length at which ended requests are removed
    if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: new LoopWatch(), configurable: true })
    this.#watch = globalThis[KEY]
  }

  open () { this.#watch.add(this) }

  stop () {
    this.#watch.delete(this)
    this.requests = []
  }

  /** Observes the start of each request. */
  follow (requests) {
    const { watchEnd } = requests
    requests.watchEnd = (record, reply, response) => {
      this.#watch.started(record.start)
      if (this.requests.length >= this.room) this.#forgetEnded()
      this.requests.push(record)
      watchEnd.call(requests, record, reply, response)
    }
  }

  /** Observes each request that is about to end. */
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
