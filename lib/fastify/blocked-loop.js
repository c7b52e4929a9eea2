'use strict'

// Which line blocked the event loop, and which requests waited for it. Loaded only where the option `blockedLoop` asks for it.
//
//   main thread:  a beat in shared memory, by a timer while requests are open, and by each request that starts
//   worker:       late by afterMs? It makes the main thread run `sample` below, again and again, until the beat is back
//   main thread:  the stack that was seen most often becomes an event on the spans of the requests that were open
//
// `sample` is called by way of the inspector, whose commands V8 runs between two lines of JavaScript that does not come to an end.
// No profiler: to start V8's takes the main thread 75 to 160 ms, and where native code blocks the loop (JSON.parse, pbkdf2Sync)
// it starts when all is over. A command that waited for native code runs at the first call after it.

const { randomBytes } = require('node:crypto')
const { findSourceMap } = require('node:module')
const { performance } = require('node:perf_hooks')
const { fileURLToPath } = require('node:url')
const { Worker, isMainThread } = require('node:worker_threads')
const { REQUEST_KEY } = require('../context/trace-context')
const { processState } = require('../runtime/process-state')
const { clearTimeout, now, setTimeout } = require('../runtime/timers')

const EVENT = 'light_trace.blocked_loop'

const inspector = process.features.inspector === true ? require('node:inspector') : null // Node can be built without

// One for the process, whatever copies of this package it has: the worker's command finds it by this name.
const NAME = 'light-trace.blocked-loop.1'
const KEY = Symbol.for(NAME)

const OPEN_MAX = 1000 // requests of an application; of more, the oldest are forgotten
const FRAMES_MAX = 20
const STACKS_MAX = 64 // different lines of one block
const LOGGED_PER_MINUTE = 6
const MINUTE_MS = 60_000

// The timer ends when nothing has come for so long, or, with requests open that may be streams, for so much longer.
const IDLE_MS = 2000
const STREAM_MS = 60_000

// Of afterMs. Sooner takes more CPU; later, more short blocks are looked into, only to find that they are short.
const BEAT_PART = 2 / 3

// A command of the worker that waited longer than this waited for native code.
const LATE_MS = 40
// The worker looks up every 100 ms at least while it samples; if it has not for longer, the whole process stood still.
const TICK_MAX_MS = 150

// The worker needs 4 to 5 MB for Node's own start.
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 4, stackSizeMb: 1 }

// The words of the shared memory. Times are milliseconds of the main thread's clock.
const BEAT = 0 // the last sign of life
const AWAKE = 1 // whether there is a timer
const BLOCKED = 2 // set by the worker, taken back by the main thread
const TAKEN = 3 // commands that were run
const ASKED_AT = 4 // when the last command was sent
const GOES_ON_AT = 5 // when the process went on after it had been stopped
const TICK = 6 // when the worker last looked up
const ENDING = 7
const CONNECTED = 8 // whether the worker has a session
const WORDS = 9

/** What the process has in common: one worker, however many applications ask. */
class LoopWatch {
  #apps = new Set()
  #words = newWords()
  #worker = null
  #timer = null
  #afterMs = Infinity
  #sign = 0 // as BEAT, with its fraction
  #beatAt = 0 // when the loop's idle time was last read
  #idle = 0
  #cpuMs = 0
  #startedAt = -Infinity // the last request
  #stacks = null // what was seen while the loop is blocked, by request and line
  #sampledAt = 0
  #block = null // the block's id, once a span has its event
  #logged = []
  #unlogged = 0
  #onExit = () => this.#stop()

  add (app) {
    this.#apps.add(app)
    const why = this.#refusal()
    if (why === null) this.#follow()
    else app.refuse(why)
  }

  delete (app) {
    if (!this.#apps.delete(app)) return
    if (this.#apps.size > 0) return this.#follow()
    this.#stop()
    if (globalThis[KEY] === this) delete globalThis[KEY]
  }

  /** Watches by the lowest threshold of all applications. */
  #follow () {
    const afterMs = Math.min(...[...this.#apps].map((app) => app.afterMs))
    if (this.#worker !== null && afterMs === this.#afterMs) return
    this.#afterMs = afterMs
    this.#stop()
    this.#start()
  }

  #refusal () {
    if (!isMainThread) return 'the application runs in a worker'
    if (inspector === null) return 'this Node has no inspector'
    // With --allow-worker alone `connectToMainThread` would end the process. Node 20 and 22 know no right to the inspector.
    const { permission } = process
    if (permission !== undefined && !(permission.has('worker') && permission.has('inspector'))) return 'Node\'s permission model forbids it'
    return inspector.url() === undefined ? null : 'a debugger may be attached (--inspect)'
  }

  #start () {
    const origin = Number(process.hrtime.bigint()) / 1e6 - now()
    this.#words = newWords() // another worker may just be ending
    try {
      // With neither the application's preloads nor its variables.
      this.#worker = new Worker(`(${watch})()`, {
        eval: true,
        name: 'light-trace',
        execArgv: [],
        env: {},
        resourceLimits: RESOURCE_LIMITS,
        workerData: { words: this.#words, origin, afterMs: this.#afterMs, command: `globalThis[Symbol.for('${NAME}')]?.sample()` }
      })
    } catch (error) {
      return this.#refuse(error?.message)
    }
    this.#worker.unref()
    this.#worker.on('error', (error) => {
      this.#stop()
      this.#refuse(error?.message)
    })
    this.#timer = setTimeout(() => this.#beat(), Math.ceil(this.#afterMs * BEAT_PART)).unref()
    this.#beat()
    process.on('exit', this.#onExit)
  }

  #stop () {
    if (this.#worker === null) return
    process.removeListener('exit', this.#onExit)
    clearTimeout(this.#timer)
    Atomics.store(this.#words, ENDING, 1)
    for (const word of [AWAKE, BLOCKED]) Atomics.notify(this.#words, word)
    // Else Node would say at the exit that it waits for a debugger.
    Atomics.wait(this.#words, CONNECTED, 1, TICK_MAX_MS)
    this.#worker.removeAllListeners()
    this.#worker.on('error', () => {})
    this.#worker.terminate()
    this.#worker = null
  }

  #refuse (why) {
    for (const app of this.#apps) app.refuse(why)
  }

  /** A request starts: the loop is alive. HOT, once per request where the option is on. */
  started (start) {
    if (this.#worker === null) return
    if (this.#words[BLOCKED] === 1) this.#back(start)
    this.#startedAt = this.#sign = start
    Atomics.store(this.#words, BEAT, start | 0)
    if (this.#words[AWAKE] === 0) this.#beat()
  }

  #beat () {
    const at = now()
    if (this.#words[BLOCKED] === 1) this.#back(at)
    this.#sign = this.#beatAt = at
    this.#idle = performance.nodeTiming.idleTime
    this.#cpuMs = cpuMs()
    Atomics.store(this.#words, BEAT, at | 0)
    if (inspector.url() !== undefined) {
      this.#stop()
      return this.#refuse('a debugger may be attached')
    }
    const isOpen = [...this.#apps].some((app) => app.open.size > 0)
    const isAwake = at - this.#startedAt < (isOpen ? STREAM_MS : IDLE_MS)
    if (isAwake) this.#timer.refresh()
    if (isAwake === (this.#words[AWAKE] === 1)) return
    Atomics.store(this.#words, AWAKE, isAwake ? 1 : 0)
    Atomics.notify(this.#words, AWAKE)
  }

  /**
   * Sees what the main thread runs and for which request. Called by the worker's command, between any two lines of the
   * application or in the middle of its regular expression: it reads, throws nothing, and has no regular expression of its own.
   */
  sample () {
    try {
      if (this.#words[BLOCKED] === 1) this.#take(callSites(this.sample), now())
    } catch {
      // Such as a frozen Error: the line stays unknown.
    } finally {
      Atomics.add(this.#words, TAKEN, 1)
    }
  }

  /** A stack stands for the time since the one before: of native code there is one, however long it took. */
  #take (sites, at) {
    const askedMs = (at | 0) - this.#words[ASKED_AT] | 0
    const isLate = askedMs > LATE_MS
    const request = processState.storage.getStore()?.getValue(REQUEST_KEY)
    const top = isLate ? whereItCameBack(sites) : sites.findIndex(isOfUser)
    const key = `${request?.spanId} ${top === -1 ? '' : `${sites[top].getFileName()}:${sites[top].getLineNumber()}`}`
    const ms = this.#sampledAt === 0 ? askedMs : at - this.#sampledAt
    this.#sampledAt = at
    this.#stacks ??= new Map()
    const stack = this.#stacks.get(key)
    if (stack !== undefined) {
      stack.ms += ms
      stack.isLate &&= isLate
    } else if (this.#stacks.size < STACKS_MAX) this.#stacks.set(key, { sites, top, request, ms, isLate })
  }

  /** A request ends while the loop is blocked, or in the turn that was: later its span could take no event. */
  ending (app, record) {
    if (this.#words[BLOCKED] === 0) return
    const extent = this.#extent(now())
    if (extent.duration < app.afterMs) return
    const found = this.#found(extent)
    if (found !== null) this.#mark(record, extent, found)
  }

  /** The loop is back. */
  #back (at) {
    const extent = this.#extent(at)
    Atomics.store(this.#words, BLOCKED, 0)
    Atomics.notify(this.#words, BLOCKED)
    const found = extent.duration < this.#afterMs ? null : this.#found(extent)
    if (found !== null) {
      for (const app of this.#apps) {
        if (extent.duration >= app.afterMs) for (const record of app.open) this.#mark(record, extent, found)
      }
      this.#log(extent, found)
    }
    this.#stacks = this.#block = null
    this.#sampledAt = 0
  }

  /**
   * How long the loop has been blocked, and since when: since the last sign of life, without the time that it was idle in, and
   * without that in which the whole process was stopped or had no CPU.
   */
  #extent (at) {
    const wentOnAt = this.#words[GOES_ON_AT]
    const wasStopped = at - this.#words[TICK] > TICK_MAX_MS
    const end = wasStopped ? this.#words[TICK] : at
    const active = at - this.#beatAt - (performance.nodeTiming.idleTime - this.#idle)
    const duration = Math.max(0, Math.min(end - Math.max(this.#sign, wentOnAt), active))
    return { duration, start: end - duration, cpu: Math.min(cpuMs() - this.#cpuMs, duration) }
  }

  /**
   * What was seen most often: a stack, and the request whose code it was. Null where no code was seen and little CPU was used: the
   * process had none, which is nobody's fault in it.
   */
  #found ({ duration, cpu }) {
    const stack = [...this.#stacks?.values() ?? []].reduce((most, other) => most === null || other.ms > most.ms ? other : most, null)
    const hasCode = stack !== null && stack.top !== -1
    if (!hasCode && cpu < duration / 2) return null
    this.#block ??= randomBytes(8).toString('hex')
    return { block: this.#block, request: stack?.request, code: hasCode ? codeOf(stack) : null }
  }

  #mark (record, { duration, start, cpu }, { block, request, code }) {
    const attributes = {
      'light_trace.blocked_loop.id': block,
      'light_trace.blocked_loop.duration': duration / 1000,
      'light_trace.blocked_loop.cpu_time': cpu / 1000
    }
    if (request !== undefined) {
      attributes['light_trace.blocked_loop.role'] = request.span === record.apiSpan ? 'culprit' : 'victim'
      attributes['light_trace.blocked_loop.culprit.trace_id'] = request.traceId
      attributes['light_trace.blocked_loop.culprit.span_id'] = request.spanId
    }
    record.apiSpan.addEvent(EVENT, { ...attributes, ...code?.attributes }, start)
  }

  #log ({ duration, cpu }, { request, code }) {
    const at = now()
    this.#logged = this.#logged.filter((loggedAt) => at - loggedAt < MINUTE_MS)
    if (this.#logged.length >= LOGGED_PER_MINUTE) {
      this.#unlogged++
      return
    }
    this.#logged.push(at)
    const others = this.#unlogged > 0 ? `; ${this.#unlogged} more were not logged` : ''
    this.#unlogged = 0
    const name = request?.span.name
    const where = code === null ? '' : code.text
    const used = cpu < duration / 2 ? ` (${Math.round(cpu)} ms of CPU)` : ''
    const whose = typeof name === 'string' && name !== '' ? `, in ${name}` : ''
    const [first] = this.#apps
    const app = [...this.#apps].find(({ tracer }) => tracer === request?.tracer) ?? first
    app.log(`the event loop was blocked for ${Math.round(duration)} ms${used}${where}${whose}${others}`)
  }
}

function newWords () {
  return new Int32Array(new SharedArrayBuffer(4 * WORDS))
}

/** The frames of the code that was interrupted, without ours and that of the command itself. */
function callSites (ours) {
  const { prepareStackTrace, stackTraceLimit } = Error
  const holder = { stack: null }
  try {
    Error.stackTraceLimit = FRAMES_MAX
    Error.prepareStackTrace = (_, sites) => sites
    Error.captureStackTrace(holder, ours)
    return holder.stack.slice(1)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Error.prepareStackTrace = prepareStackTrace
  }
}

/** Not Node's own, and no function that is built into V8. */
function isOfUser (site) {
  const file = site.getFileName()
  return typeof file === 'string' && file !== '' && !file.startsWith('node:')
}

/**
 * The frame that called the native code, as far as it can be told: what is on top has just been entered and is not to blame. A
 * package under which no code of the application is left, such as Fastify, has only gone on.
 */
function whereItCameBack (sites) {
  const first = sites.findIndex((site) => isOfUser(site) && !isAtEntry(site))
  return first !== -1 && isOfPackage(sites[first].getFileName()) ? -1 : first
}

function isOfPackage (file) {
  return file.includes('/node_modules/') || file.includes('\\node_modules\\')
}

function isAtEntry (site) {
  return site.getLineNumber() === site.getEnclosingLineNumber() && site.getColumnNumber() === site.getEnclosingColumnNumber()
}

/** @returns {{ attributes: object, text: string }} https://opentelemetry.io/docs/specs/semconv/registry/attributes/code/ */
function codeOf ({ sites, top, isLate }) {
  const frames = sites.map(frameOf)
  const { name, file, line, column } = frames[top]
  const attributes = {
    'code.function.name': name,
    'code.file.path': file,
    'code.line.number': line,
    'code.column.number': column,
    'code.stacktrace': frames.slice(isLate ? top : 0).map(({ text }) => `    at ${text}`).join('\n')
  }
  if (isLate) attributes['light_trace.blocked_loop.is_before_line'] = true
  return { attributes, text: ` ${isLate ? 'at or just before' : 'at'} ${name} (${file}:${line})` }
}

/** A frame, by its source where Node knows a source map: it does with --enable-source-maps. */
function frameOf (site) {
  const own = { file: pathOf(site.getFileName() ?? ''), line: site.getLineNumber() ?? 0, column: site.getColumnNumber() ?? 0 }
  const name = site.getFunctionName() || '<anonymous>'
  const { file, line, column } = inSource(site.getFileName(), own) ?? own
  return { name, file, line, column, text: `${name} (${file === '' ? 'native' : `${file}:${line}:${column}`})` }
}

function inSource (file, { line, column }) {
  try {
    const entry = findSourceMap(file)?.findEntry(line - 1, column - 1)
    if (entry === undefined || !('originalSource' in entry)) return null
    return { file: pathOf(entry.originalSource), line: entry.originalLine + 1, column: entry.originalColumn + 1 }
  } catch {
    return null
  }
}

function pathOf (file) {
  try {
    return file.startsWith('file:') ? fileURLToPath(file) : file
  } catch {
    return file
  }
}

/** Of the process, all its threads. */
function cpuMs () {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** One application's part of it. */
class BlockedLoop {
  #watch = null

  constructor (tracer) {
    this.tracer = tracer
    this.afterMs = tracer.settings.blockedLoop.afterMs
    this.open = new Set() // the records of its open requests
  }

  start () {
    if (globalThis[KEY] === undefined) Object.defineProperty(globalThis, KEY, { value: new LoopWatch(), configurable: true })
    this.#watch = globalThis[KEY]
    this.#watch.add(this)
  }

  close () {
    this.#watch?.delete(this)
    this.open.clear()
  }

  refuse (why) {
    this.tracer.report.once('LT_WARN_BLOCKED_LOOP', `blockedLoop has no effect: ${why}`)
  }

  log (message) {
    this.tracer.report.once('LT_WARN_LOOP_BLOCKED', message, new Set())
  }

  /** Follows requests from here to `ending`. */
  follow (requests) {
    const { watchEnd } = requests
    requests.watchEnd = (record, reply, response) => {
      this.#watch?.started(record.start)
      if (this.open.size >= OPEN_MAX) this.open.delete(this.open.values().next().value)
      this.open.add(record)
      watchEnd.call(requests, record, reply, response)
    }
  }

  ending (record) {
    if (this.open.delete(record)) this.#watch.ending(this, record)
  }
}

/**
 * The worker's program, handed over as text, so that it is in bundles too: it sees nothing of this file. Its functions are methods,
 * because bundlers that keep the names of others call a helper for that, which the worker does not have.
 */
function watch () {
  const { Session } = require('node:inspector')
  const { workerData: { origin, afterMs, command, ...shared } } = require('node:worker_threads')
  const words = /** @type {Int32Array} */ (shared.words)
  const [BEAT, AWAKE, BLOCKED, TAKEN, ASKED_AT, GOES_ON_AT, TICK, ENDING, CONNECTED] = words.keys()
  const session = new Session()
  session.connectToMainThread() // what forbids it is known at the start
  session.disconnect()
  const worker = {
    asked: 0, // commands that were sent

    /** Waits for a loop that is blocked. The answers of the session are read between two of them. */
    look () {
      while (Atomics.load(words, ENDING) === 0) {
        Atomics.wait(words, AWAKE, 0)
        const waitsMs = afterMs - this.sinceBeat()
        if (waitsMs > 0) this.sleep(AWAKE, 1, waitsMs)
        else if (Atomics.load(words, AWAKE) === 1) {
          this.ask()
          return setImmediate(() => this.look())
        }
      }
    },

    sinceBeat () {
      const beat = Atomics.load(words, BEAT)
      const goesOnAt = Atomics.load(words, GOES_ON_AT)
      return this.now() - ((goesOnAt - beat | 0) > 0 ? goesOnAt : beat) | 0
    },

    /** Asks the main thread for its stack until the loop is back. */
    ask () {
      Atomics.store(words, CONNECTED, 1)
      Atomics.store(words, BLOCKED, 1)
      session.connectToMainThread()
      for (let count = 0; Atomics.load(words, BLOCKED) === 1 && Atomics.load(words, ENDING) === 0; count++) {
        if (this.asked === Atomics.load(words, TAKEN)) {
          this.asked++
          Atomics.store(words, ASKED_AT, this.now())
          session.post('Runtime.evaluate', { expression: command, silent: true })
        }
        this.sleep(BLOCKED, 1, count < 50 ? 10 : 100)
      }
      session.disconnect()
      Atomics.store(words, CONNECTED, 0)
      Atomics.notify(words, CONNECTED)
    },

    // Who sleeps for much too long was stopped, or had no CPU, and so had the main thread.
    sleep (word, value, ms) {
      const before = this.now()
      Atomics.wait(words, word, value, ms)
      const after = this.now()
      Atomics.store(words, TICK, after)
      if ((after - before | 0) - ms > afterMs / 2) Atomics.store(words, GOES_ON_AT, after)
    },

    now () {
      return (Number(process.hrtime.bigint()) / 1e6 - origin) | 0
    }
  }
  worker.look()
}

module.exports = { BlockedLoop }
