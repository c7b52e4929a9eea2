'use strict'

// The way in: a destination that stands before the logger's own, under the symbol that pino exports for integrations
// (`pino.symbols.streamSym`), and hands each line on to it first, byte by byte, but for those that are held back. So it sees what
// is printed and nothing else, and nothing of pino is replaced. It asks for what pino gives to such destinations beside the line
// (`Symbol.for('pino.metadata')`).

const { SPAN_KEY } = require('../context/trace-context.js')
const { kSpan, symbolOf } = require('../fastify/keys.js')
const { attempt } = require('../runtime/report.js')
const { STATUS_ERROR } = require('../span/recording-span.js')

const kMetadata = Symbol.for('pino.metadata')
// So that two applications with one logger do not export its lines twice: what the others do when the tap is free again.
const kTap = Symbol.for('light-trace.logTaps')

/**
 * @typedef {object} LoggedLine
 * @property {string} line as it was printed, with its line end; '' for an event
 * @property {string} bindings what the logger's own bindings are in it; '' if that is not known
 * @property {Array | null} list the attributes of an event
 * @property {string} eventName '' for a line
 * @property {Scope} scope what wrote it
 * @property {number} time milliseconds on the monotonic clock: when the code wrote it
 * @property {number} observedTime and when it was printed
 * @property {number} severityNumber OpenTelemetry's, 1 to 24
 * @property {string} severityText the level's name; '' where it has none
 * @property {TraceContext | undefined} context the active span at the call
 */

/**
 * Puts a tap on the destination of a logger, and of all its parents and children that share it. What it calls must not throw.
 * @param {object} log Fastify's `app.log`
 * @param {(line: string, level: number, logger: object) => void} onLine
 * @param {(line: string, level: number, logger: object) => boolean} isHeld whether the line is not to be printed now
 * @returns {{ print (line: string, level: number): void, release (): void } | null} null if the logger is not pino's or has a tap already
 */
function tapLogger (log, onLine, isHeld) {
  const key = symbolOf(log, 'pino.stream')
  if (key === undefined) return null
  let owner = log
  while (!Object.hasOwn(owner, key)) owner = Object.getPrototypeOf(owner)
  const stream = owner[key]
  if (typeof stream?.write !== 'function' || stream[kTap] !== undefined) return null
  const tap = tapOn(stream, (line, level, logger) => onLine(line, level, logger), isHeld)
  owner[key] = tap
  return {
    print (line, level) {
      if (stream[kMetadata] === true) stream.lastLevel = level
      stream.write(line)
    },
    release () {
      onLine = () => {}
      if (owner[key] === tap) owner[key] = stream
      for (const fn of tap[kTap].splice(0)) fn()
    }
  }
}

/** Calls `fn` when the application that has the tap of this logger has closed. Returns what takes that back. */
function whenReleased (log, fn) {
  const waiting = log[symbolOf(log, 'pino.stream')]?.[kTap]
  waiting?.push(fn)
  return () => { if (waiting?.includes(fn)) waiting.splice(waiting.indexOf(fn), 1) }
}

function tapOn (stream, onLine, isHeld) {
  const wantsMetadata = stream[kMetadata] === true
  // All but `write` is the destination's own: flush, end, what a test looks at.
  const rest = new Proxy(stream, {
    get (target, name) {
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    }
  })
  return {
    __proto__: rest,
    [kMetadata]: true,
    [kTap]: [],
    lastLevel: 0,
    lastMsg: undefined,
    lastObj: undefined,
    lastTime: undefined,
    lastLogger: undefined,
    write (line) {
      const { lastLevel, lastMsg, lastObj, lastTime, lastLogger } = this
      this.lastMsg = this.lastObj = this.lastLogger = undefined // not kept in memory
      if (isHeld(line, lastLevel, lastLogger)) return true
      if (wantsMetadata) Object.assign(stream, { lastLevel, lastMsg, lastObj, lastTime, lastLogger })
      const answer = stream.write(line)
      onLine(line, lastLevel, lastLogger)
      return answer
    }
  }
}

// Lines below the logger's own level, which are held with their request and printed only if it fails, is slow or is kept.
//
// The level of each request's own logger is lowered, so that pino writes these lines; the tap hands them over in place of the
// destination. No other logger is touched.

const LINES_MAX = 64 // of a request: the last ones say how it failed
const REQUEST_CHARACTERS_MAX = 64 * 1024
const CHARACTERS_MAX = 8 * 1024 * 1024 // of all requests together

const kHeld = Symbol('light-trace.heldLines') // on a request's logger, from which its children inherit it

/**
 * @param {object} app whose requests hold lines
 * @param {string} lowest the least level that is held
 * @param {() => { slowerThanMs: number, aborted: boolean } | null} keepOf what is worth printing beside failures
 * @param {(said: object) => void} print prints what `take` was given
 */
function holdLines (app, lowest, keepOf, print) {
  let characters = 0 // that all requests hold
  let hasFactories = false
  let forgotten = 0

  // A logger that the application's factory makes may be shared by several requests.
  app.addHook('onRoute', ({ childLoggerFactory }) => { hasFactories ||= childLoggerFactory !== undefined })
  app.addHook('onRequest', ({ log, server }, reply, done) => {
    const isOwn = log !== server.log && !hasFactories && server.childLoggerFactory.name === 'defaultChildLoggerFactory'
    if (isOwn && log.levels?.values[lowest] < log.levelVal && log.levelVal !== Infinity) {
      // What its request has said so far. isWorth: once that is over; what comes later is printed at once, or not at all.
      const held = log[kHeld] = { log, ownLevel: log.levelVal, characters: 0, lines: [], isWorth: undefined }
      log.level = lowest
      reply.raw.once('close', () => onEnd(held, reply))
    }
    done()
  })

  function add (held, count) {
    held.characters += count
    characters += count
  }

  function onEnd (held, reply) {
    const keep = keepOf()
    const isSlow = reply.elapsedTime >= (keep?.slowerThanMs ?? Infinity)
    const isAborted = keep?.aborted === true && !reply.raw.writableFinished
    held.isWorth = reply.statusCode >= 500 || hasFailed(reply.raw[kSpan]) || isSlow || isAborted
    add(held, -held.characters)
    for (const said of held.lines.splice(0)) if (held.isWorth) print(said)
  }

  return {
    /** How many lines made room for later ones. */
    get forgotten () { return forgotten },

    /** Whether the logger would not have written it: a child with another level goes by that. */
    isBelow (level, logger) {
      const held = logger?.[kHeld]
      return held !== undefined && level < held.ownLevel && logger.levelVal === held.log.levelVal
    },

    /** Takes a line that is below. */
    take (said, logger) {
      const held = logger[kHeld]
      if (held.isWorth === true) return print(said)
      if (held.isWorth === false) return
      add(held, said.line.length)
      held.lines.push(said)
      while (held.lines.length > LINES_MAX || held.characters > REQUEST_CHARACTERS_MAX || characters > CHARACTERS_MAX) {
        if (held.lines.length === 0) return
        add(held, -held.lines.shift().line.length)
        forgotten++
      }
    }
  }
}

/** Whether the application says so of the request's span, whatever the answer's status is. */
function hasFailed (context) {
  return attempt(() => context?.getValue(SPAN_KEY)?.status?.code) === STATUS_ERROR // it may be an SDK's
}

module.exports = { tapLogger, whenReleased, holdLines }
