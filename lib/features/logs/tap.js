'use strict'

// The tap reads the logger's lines. It is a destination in front of the logger's own, set under the symbol that pino exports for
// integrations (`pino.symbols.streamSym`). It first passes each line on unchanged, except lines that are held back. So it sees exactly
// what is printed, and nothing of pino is replaced. It also requests the metadata that pino gives to destinations
// (`Symbol.for('pino.metadata')`).

const { kContext, ownHook, symbolOf } = require('../../fastify/keys.js')
const { whenEnded } = require('../../fastify/response-end.js')
const { attempt } = require('../../runtime/report.js')
const { FAILED } = require('../../span/outcome.js')

const kMetadata = Symbol.for('pino.metadata')
// Marks a tap, so that two applications with one logger do not export its lines twice. Holds the other applications' callbacks for when
// the tap is free again.
const kTap = Symbol.for('light-trace.logTaps')
const kReleased = Symbol.for('light-trace.releasedTap') // the destination of a tap whose application has closed: the next tap replaces it

/**
 * @typedef {object} LoggedLine
 * @property {string} line as printed, with its line end; '' for an event
 * @property {string} bindings the text of the logger's bindings in the line; '' if unknown
 * @property {Array | null} list the attributes of an event; null for a line
 * @property {string} eventName '' for a line
 * @property {Scope} scope the library that wrote it
 * @property {number} time milliseconds on the monotonic clock: when it was logged
 * @property {number} observedTime milliseconds on the monotonic clock: when it was printed
 * @property {number} severityNumber OpenTelemetry's, 1 to 24
 * @property {string} severityText the level's name; '' if it has none
 * @property {TraceContext | undefined} context the span that it belongs to
 * @property {import('./logged-error').LoggedError | null} error the logged error
 * @property {Array | null} inherited attributes that the record gets from its request's span, as a flat list; null: none
 */

/**
 * Puts a tap on the destination of a logger, and of all its parents and children that share it. The callbacks must not throw.
 * @param {object} log Fastify's `app.log`
 * @param {(line: string, level: number, logger: object, given: object) => void} onLine `given`: the logged object
 * @param {(line: string, level: number, logger: object, given: object) => boolean} isHeld whether the line is not to be printed now
 * @returns {{ print (line: string, level: number): void, flush (): void, release (): void } | null} null if the logger is not pino's or has a tap already
 */
function tapLogger (log, onLine, isHeld) {
  const key = symbolOf(log, 'pino.stream')
  if (key === undefined) return null
  let owner = log
  while (!Object.hasOwn(owner, key)) owner = Object.getPrototypeOf(owner)
  const stream = owner[key]?.[kReleased] ?? owner[key]
  if (typeof stream?.write !== 'function' || stream[kTap] !== undefined) return null
  const tap = tapOn(stream, (line, level, logger, given) => onLine(line, level, logger, given), isHeld)
  owner[key] = tap
  return {
    print (line, level) {
      if (stream[kMetadata] === true) stream.lastLevel = level
      stream.write(line)
    },
    flush () { stream.flushSync?.() },
    // If no other application waits for the tap, it stays, so that lines which are still written are counted as lost.
    release () {
      const others = tap[kTap]
      tap[kTap] = undefined
      tap[kReleased] = stream
      if (others.length === 0) return
      onLine = () => {}
      if (owner[key] === tap) owner[key] = stream
      for (const fn of others) fn()
    }
  }
}

/** Calls `fn` when the application that has the tap of this logger has closed. Returns a function that cancels this. */
function whenReleased (log, fn) {
  const waiting = log[symbolOf(log, 'pino.stream')]?.[kTap]
  waiting?.push(fn)
  return () => { if (waiting?.includes(fn)) waiting.splice(waiting.indexOf(fn), 1) }
}

function tapOn (stream, onLine, isHeld) {
  const wantsMetadata = stream[kMetadata] === true
  // Everything but `write` comes from the destination: flush, end, properties that a test reads.
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
    [kReleased]: undefined,
    lastLevel: 0,
    lastMsg: undefined,
    lastObj: undefined,
    lastTime: undefined,
    lastLogger: undefined,
    write (line) {
      const { lastLevel, lastMsg, lastObj, lastTime, lastLogger } = this
      this.lastMsg = this.lastObj = this.lastLogger = undefined // frees the memory
      if (isHeld(line, lastLevel, lastLogger, lastObj)) return true
      if (wantsMetadata) Object.assign(stream, { lastLevel, lastMsg, lastObj, lastTime, lastLogger })
      const answer = stream.write(line)
      onLine(line, lastLevel, lastLogger, lastObj)
      return answer
    }
  }
}

// Holds lines below the logger's level with their request, and prints them only if the request fails, is slow or is kept.
//
// pino gives a logger a method that does nothing for each level below its own. We replace these methods on the logger of a request by
// methods that write, but do not change its level. So an application that sets the level, or gives a child another one, gets pino's usual
// methods. The tap holds lines below their logger's level instead of passing them to the destination. No other logger is changed.

const LINES_MAX = 64 // of a request: the last lines are kept, because they show how it failed
const REQUEST_CHARACTERS_MAX = 64 * 1024
const CHARACTERS_MAX = 8 * 1024 * 1024 // of all requests together
const RANK_CHARACTERS = 1024 // requests that hold about the same amount have the same rank

const kHeld = Symbol('light-trace.heldLines') // on a request's logger; its children inherit it

/**
 * @param {object} app whose requests hold lines
 * @param {string} lowest the lowest level that is held
 * @param {(request: object) => { afterMs: number }} slowOf from which duration on a request is slow, so that its lines are printed
 * @param {() => { aborted: boolean } | null} keepOf the settings of `keep`: lines of kept requests are printed too
 * @param {(said: object) => void} print prints a line that `take` got
 * @param {() => void} flush flushes the destination
 */
function holdLines (app, lowest, slowOf, keepOf, print, flush) {
  let characters = 0 // held by all requests
  const ranks = Array.from({ length: REQUEST_CHARACTERS_MAX / RANK_CHARACTERS + 1 }, () => new Set()) // the requests that hold lines, by amount
  let hasFactories = false
  let forgotten = 0
  const { methods, isLevelEnabled } = holdingMethods(app.log, lowest)
  const lowestLevel = app.log.levels.values[lowest]
  const compare = levelComparisonOf(app.log)
  const isWritten = (level, logger) => compare(level, logger.levelVal)

  // Several requests may share a logger from the application's own factory.
  app.addHook('onRoute', ({ childLoggerFactory }) => { hasFactories ||= childLoggerFactory !== undefined })
  app.addHook('onRequest', ownHook(({ log, server }, reply, done) => {
    if (Object.hasOwn(log, kHeld)) { // a second request with this logger, which must come from the application's own factory
      const { level } = log
      log.level = level // pino's setter restores its own methods
      hasFactories = true
    }
    const isOwn = !hasFactories && Object.prototype.isPrototypeOf.call(server.log, log)
    if (isOwn && log.levelVal !== Infinity && !isWritten(lowestLevel, log)) {
      // The lines of the request so far. isWorth: set when the request has ended; later lines are printed at once or dropped.
      log[kHeld] = { reply, characters: 0, rank: -1, lines: [], isFollowed: false, isWorth: undefined }
      log.isLevelEnabled = isLevelEnabled
      for (const { name, level, method } of methods) if (!isWritten(level, log)) log[name] = method
    }
    done()
  }))

  /** Waits for the end of a request, starting at its first held line. Returns false if the end will not be reported. */
  function follow (held) {
    const { reply, reply: { raw } } = held
    if (raw[kContext] === undefined) return false
    whenEnded(reply, (outcome) => settle(held, outcome))
    return true
  }

  function settle (held, outcome) {
    const { reply, lines } = held
    held.isWorth = outcome === FAILED || reply.elapsedTime >= slowOf(reply.request).afterMs || keepOf()?.[outcome] === true
    held.lines = []
    held.reply = null
    weigh(held, -held.characters)
    rank(held)
    if (held.isWorth) for (const said of lines) print(said)
  }

  function weigh (held, count) {
    held.characters += count
    characters += count
  }

  function rank (held) {
    const place = held.lines.length === 0 ? -1 : Math.floor(held.characters / RANK_CHARACTERS)
    if (place === held.rank) return
    if (held.rank !== -1) ranks[held.rank].delete(held)
    if (place !== -1) ranks[place].add(held)
    held.rank = place
  }

  function forget (held) {
    weigh(held, -held.lines.shift().line.length)
    forgotten++
  }

  function isFull () { return characters > CHARACTERS_MAX }

  function giveWay () {
    const [largest] = ranks.findLast((some) => some.size > 0)
    forget(largest)
    rank(largest)
  }

  const holder = {
    /** The number of lines that were dropped for later ones. */
    get forgotten () { return forgotten },

    /** Whether Fastify without light-trace would not have written the line. */
    isBelow (level, logger) { return logger?.[kHeld] !== undefined && !isWritten(level, logger) },

    /** Takes a line for which `isBelow` is true. */
    take (said, logger) {
      const held = logger[kHeld]
      if (!(held.isFollowed ||= follow(held))) return
      if (held.isWorth === true) return print(said)
      if (held.isWorth === false) return
      held.lines.push(said)
      weigh(held, said.line.length)
      while (held.lines.length > LINES_MAX || held.characters > REQUEST_CHARACTERS_MAX) forget(held)
      rank(held)
      while (isFull()) giveWay()
    },

    /** Prints all held lines. */
    printAll () {
      for (const some of ranks) for (const { lines } of some) lines.splice(0).forEach((said) => print(said))
      flush()
    },

    release () {
      if (holders.delete(holder) && holders.size === 0) process.off('exit', onExit)
    }
  }
  if (holders.size === 0) process.on('exit', onExit)
  holders.add(holder)
  return holder
}

const holders = new Set()

/** If the process exits with an error code, its open requests have failed. */
function onExit (code) {
  if (code !== 0) for (const holder of holders) attempt(() => holder.printAll())
}

/** pino's own methods for the levels from `lowest` on, and an isLevelEnabled for loggers that have these methods. */
function holdingMethods (log, lowest) {
  const model = Object.create(log, { emit: { value () {} } }) // so that no listener is called for the change of level
  model.level = lowest
  const methods = Object.entries(log.levels.values).filter(([name]) => model.isLevelEnabled(name)).map(([name, level]) => ({ name, level, method: model[name] }))
  const { isLevelEnabled } = log
  return {
    methods,
    isLevelEnabled (name) { return isLevelEnabled.call(this, name) || methods.some((held) => held.name === name && held.method === this[name]) }
  }
}

/** A function that tells whether a level is written under a minimum: level numbers may fall with severity. */
function levelComparisonOf (log) {
  return log[symbolOf(log, 'pino.levelComp')] ?? ((level, minimum) => level >= minimum)
}

module.exports = { tapLogger, whenReleased, holdLines, levelComparisonOf }
