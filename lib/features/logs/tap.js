'use strict'

// The way in: a destination that stands before the logger's own, under the symbol that pino exports for integrations
// (`pino.symbols.streamSym`), and hands each line on to it first, byte by byte, but for those that are held back. So it sees what
// is printed and nothing else, and nothing of pino is replaced. It asks for what pino gives to such destinations beside the line
// (`Symbol.for('pino.metadata')`).

const { kContext, ownHook, symbolOf } = require('../../fastify/keys.js')
const { whenEnded } = require('../../fastify/response-end.js')
const { attempt } = require('../../runtime/report.js')
const { FAILED } = require('../../span/outcome.js')

const kMetadata = Symbol.for('pino.metadata')
// So that two applications with one logger do not export its lines twice: what the others do when the tap is free again.
const kTap = Symbol.for('light-trace.logTaps')
const kReleased = Symbol.for('light-trace.releasedTap') // the destination of a tap whose application has closed: the next one takes its place

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
 * @property {import('./logged-error').LoggedError | null} error that was logged
 * @property {Array | null} inherited attributes of its request's span that the record gets, flat; null: none
 */

/**
 * Puts a tap on the destination of a logger, and of all its parents and children that share it. What it calls must not throw.
 * @param {object} log Fastify's `app.log`
 * @param {(line: string, level: number, logger: object, given: object) => void} onLine `given`: the object that was logged
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
    // Without another application that waits for it the tap stays: what is still written is lost, and has to be counted.
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
    [kReleased]: undefined,
    lastLevel: 0,
    lastMsg: undefined,
    lastObj: undefined,
    lastTime: undefined,
    lastLogger: undefined,
    write (line) {
      const { lastLevel, lastMsg, lastObj, lastTime, lastLogger } = this
      this.lastMsg = this.lastObj = this.lastLogger = undefined // not kept in memory
      if (isHeld(line, lastLevel, lastLogger, lastObj)) return true
      if (wantsMetadata) Object.assign(stream, { lastLevel, lastMsg, lastObj, lastTime, lastLogger })
      const answer = stream.write(line)
      onLine(line, lastLevel, lastLogger, lastObj)
      return answer
    }
  }
}

// Lines below the logger's own level, which are held with their request and printed only if it fails, is slow or is kept.
//
// pino gives a logger a method that does nothing for each level below its own. The logger of a request gets methods that write in their
// place, and keeps its level: an application that sets that, or gives a child another, has the methods that it asked for. What is written
// below its logger's level all the same the tap hands over in place of the destination. No other logger is touched.

const LINES_MAX = 64 // of a request: the last ones say how it failed
const REQUEST_CHARACTERS_MAX = 64 * 1024
const CHARACTERS_MAX = 8 * 1024 * 1024 // of all requests together
const RANK_CHARACTERS = 1024 // requests that hold about as much have one rank

const kHeld = Symbol('light-trace.heldLines') // on a request's logger, from which its children inherit it

/**
 * @param {object} app whose requests hold lines
 * @param {string} lowest the least level that is held
 * @param {(request: object) => { afterMs: number }} slowOf from when on a request is slow, which makes its lines worth printing
 * @param {() => { aborted: boolean } | null} keepOf what `keep` keeps is worth it, too
 * @param {(said: object) => void} print prints what `take` was given
 * @param {() => void} flush has it printed at once
 */
function holdLines (app, lowest, slowOf, keepOf, print, flush) {
  let characters = 0 // that all requests hold
  const ranks = Array.from({ length: REQUEST_CHARACTERS_MAX / RANK_CHARACTERS + 1 }, () => new Set()) // those that hold lines, by how much
  let hasFactories = false
  let forgotten = 0
  const { methods, isLevelEnabled } = holdingMethods(app.log, lowest)
  const lowestLevel = app.log.levels.values[lowest]
  const compare = levelComparisonOf(app.log)
  const isWritten = (level, logger) => compare(level, logger.levelVal)

  // A logger that the application's factory makes may be shared by several requests.
  app.addHook('onRoute', ({ childLoggerFactory }) => { hasFactories ||= childLoggerFactory !== undefined })
  app.addHook('onRequest', ownHook(({ log, server }, reply, done) => {
    if (Object.hasOwn(log, kHeld)) { // a second request with this logger: a factory of the application's hands it out
      const { level } = log
      log.level = level // for which pino makes its methods anew
      hasFactories = true
    }
    const isOwn = !hasFactories && Object.prototype.isPrototypeOf.call(server.log, log)
    if (isOwn && log.levelVal !== Infinity && !isWritten(lowestLevel, log)) {
      // What its request has said so far. isWorth: once that is over; what comes later is printed at once, or not at all.
      log[kHeld] = { reply, characters: 0, rank: -1, lines: [], isFollowed: false, isWorth: undefined }
      log.isLevelEnabled = isLevelEnabled
      for (const { name, level, method } of methods) if (!isWritten(level, log)) log[name] = method
    }
    done()
  }))

  /** Looks for the end of a request from its first line on. Returns whether there is one to come. */
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
    /** How many lines made room for later ones. */
    get forgotten () { return forgotten },

    /** Whether bare Fastify would not have written it. */
    isBelow (level, logger) { return logger?.[kHeld] !== undefined && !isWritten(level, logger) },

    /** Takes a line that is below. */
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

    /** Prints all that is held. */
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

/** A process that ends by an error, or says that it does, ends its requests: they have failed. */
function onExit (code) {
  if (code !== 0) for (const holder of holders) attempt(() => holder.printAll())
}

/** pino's own methods of the levels from `lowest` on, and an isLevelEnabled for what has them. */
function holdingMethods (log, lowest) {
  const model = Object.create(log, { emit: { value () {} } }) // no listener hears of it
  model.level = lowest
  const methods = Object.entries(log.levels.values).filter(([name]) => model.isLevelEnabled(name)).map(([name, level]) => ({ name, level, method: model[name] }))
  const { isLevelEnabled } = log
  return {
    methods,
    isLevelEnabled (name) { return isLevelEnabled.call(this, name) || methods.some((held) => held.name === name && held.method === this[name]) }
  }
}

/** What tells whether a level is written under a minimum: levels may be counted downwards. */
function levelComparisonOf (log) {
  return log[symbolOf(log, 'pino.levelComp')] ?? ((level, minimum) => level >= minimum)
}

module.exports = { tapLogger, whenReleased, holdLines, levelComparisonOf }
