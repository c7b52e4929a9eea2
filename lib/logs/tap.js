'use strict'

// The way in: a destination that stands before the logger's own, under the symbol that pino exports for integrations
// (`pino.symbols.streamSym`), and hands each line on to it first, byte by byte, but for those that are held back. So it sees what is printed and nothing else, and
// nothing of pino is replaced. It asks for what pino gives to such destinations beside the line (`Symbol.for('pino.metadata')`).

const { symbolOf } = require('../fastify/keys')

const kMetadata = Symbol.for('pino.metadata')
const kTap = Symbol.for('light-trace.logTap') // so that two applications with one logger do not export its lines twice

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
  if (typeof stream?.write !== 'function' || stream[kTap] === true) return null
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
    }
  }
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
    [kTap]: true,
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

module.exports = { tapLogger }
