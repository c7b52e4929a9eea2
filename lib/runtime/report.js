'use strict'

// Everything that light-trace logs, one line per message, as often as lib/runtime/codes.json allows for its code. It goes to the app's
// logger, or is a process warning if the logger would not print it.

const { monotonicNow } = require('./timers.js')
/** @type {Record<Code, { often: string, per?: string }>} */
const CODES = require('./codes.json')

const PRINTABLE_MAX = 256
const LINE_MAX = 2 * PRINTABLE_MAX // a line names a file or a URL, and then says what happened to it
// The characters that are filtered. Without this limit a message of 100 MB would be scanned to its end.
const SCAN_MAX = 4 * PRINTABLE_MAX

// An ANSI sequence after its ESC: the bracket, parameters, one final byte.
const SEQUENCE = /^\[[ -?]*[^]?/
const SPACING = /[\t-\r\x85\u2028\u2029]/g
// Written as ranges, because a Unicode class loads ICU at every start.
const CONTROLS = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g // eslint-disable-line no-control-regex

/** Makes untrusted text safe for a log line: removes terminal escapes, line breaks and controls that reverse the reading direction. */
function printable (value, max = PRINTABLE_MAX) {
  const text = typeof value === 'string' ? value : plainText(value)
  const [first, ...others] = text.slice(0, SCAN_MAX).split('\x1b')
  const plain = first + others.map((part) => part.replace(SEQUENCE, '')).join('')
  // The cut may split a surrogate pair, and the text may already contain lone surrogates.
  return plain.replace(SPACING, ' ').replace(CONTROLS, '').slice(0, max).toWellFormed()
}

// Objects are not converted, because their toString is the application's code.
function plainText (value) {
  if (value === null || typeof value === 'undefined') return ''
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' ? `${value}` : `[${typeof value}]`
}

/** Returns the message of a thrown value, or the value itself if it has none. It may be any value, and its getters may throw. */
function messageOf (error, key = 'message') {
  return attempt(() => printable(error[key] ?? error)) ?? printable(error)
}

const SUBJECTS_MAX = 100 // per code: an application may create subject names from its data

// How long a code, or a code with its subject, is not logged again.
const AGAIN_AFTER_MS = { thrown: Infinity, once: Infinity, 'once in 30 s': 30_000, 'each time': -Infinity }

/** Remembers what was logged by one application, or by all applications that share a collector. */
class Said {
  #now
  #at = new Map() // code -> subject -> when
  #losses = new Set() // subjects of logged losses that are not over yet

  constructor (now = monotonicNow) {
    this.#now = now
  }

  /** Whether to log this now, as often as the table allows. After SUBJECTS_MAX subjects, all further ones count as one. */
  isDue (code, subject) {
    const { often, per } = CODES[code] ?? CODES.LT_WARN_BUG // unknown codes come from another version that shares the collector
    const at = this.#at.get(code) ?? new Map()
    const key = per === undefined || (at.size >= SUBJECTS_MAX && !at.has(subject)) ? '' : subject
    const now = this.#now()
    if (now - (at.get(key) ?? -Infinity) < AGAIN_AFTER_MS[often]) return false
    this.#at.set(code, at.set(key, now))
    if (code === 'LT_WARN_LOSS') this.#losses.add(subject)
    return true
  }

  /** Ends a loss. Returns whether it was logged before and not over. */
  isOver (subject) { return this.#losses.delete(subject) }
}

// Levels at which a logger without isLevelEnabled prints no warnings.
const SILENT_FOR_WARNINGS = new Set(['error', 'fatal', 'silent'])
const LEVELS_WITH_DEBUG = new Set(['trace', 'debug', 'verbose', 'all'])

class Report {
  #log
  #level
  #said

  // `level` is OTEL_LOG_LEVEL's: none | error | warn | info | debug | verbose | all.
  constructor (log, level = 'info', said = new Said()) {
    // A weak reference: a message after the application was collected becomes a process warning.
    this.#log = log !== null && typeof log === 'object' ? new WeakRef(log) : null
    this.#level = level
    this.#said = said
  }

  /** Returns a report that logs to the same application, and skips what other users of `said` have logged. */
  sharing (said) { return new Report(this.#log?.deref(), this.#level, said) }

  /** @param {{ warnings: readonly Warning[], news?: readonly string[] }} settings each entry becomes a line */
  startup ({ warnings, news = [] }) {
    for (const { code, message } of warnings) this.warn(code, message)
    for (const message of news) this.info(message)
  }

  /**
   * Logs a line, as often as lib/runtime/codes.json allows for its code. Returns whether it did.
   * @param {Code} code
   * @param {string} subject keeps apart failures that share a code, so that one does not suppress the other
   */
  warn (code, message, subject = message) {
    if (!this.#said.isDue(code, subject)) return false
    this.#print(code, message)
    return true
  }

  /** @param {Code} code @param {string} what describes the failure; the default for the subject */
  failed (code, what, error, subject = what) {
    const isOurs = code === 'LT_WARN_BUG'
    return this.warn(code, `${isOurs ? 'Bug: ' : ''}${what}: ${messageOf(error, isOurs ? 'stack' : 'message')}`, subject)
  }

  /** Like `attempt` below, but logs a line if `fn` throws or returns a promise. @param {Code} code */
  attempt (code, what, fn) {
    try {
      return atOnce(fn())
    } catch (error) {
      this.failed(code, what, error)
    }
  }

  /** Logs the end of a loss, if the loss was logged. Returns whether it did. */
  recovered (subject, message) { return this.#said.isOver(subject) && this.warn('LT_WARN_RECOVERED', message) }

  /** Logs harmless news: at `info` where the behavior differs from the options, at `debug` where it does not. */
  info (message, level = 'info') {
    if (['none', 'error', 'warn'].includes(this.#level)) return
    const log = this.#log?.deref()
    attempt(() => prints(log, level) && calmed(log[level](printable(message, LINE_MAX)))) // if this fails, only news is lost
  }

  #print (code, message) {
    if (this.#level === 'none' || this.#level === 'error') return
    const text = printable(message, LINE_MAX)
    const log = this.#log?.deref()
    try {
      if (prints(log, 'warn')) return calmed(log.warn({ code }, text))
    } catch {} // the logger threw, so it has not printed the line
    warnProcess(text, code)
  }
}

/**
 * Emits a process warning. For a warning made from text, Node assigns the name. That throws if the application has frozen
 * Error.prototype, and in a socket's callback it would end the process.
 * @param {Code} code
 */
function warnProcess (text, code) {
  try {
    const warning = Object.defineProperties(new Error(text), { name: { value: 'LightTraceWarning' }, code: { value: code } })
    Error.captureStackTrace(warning, warnProcess)
    process.emitWarning(warning)
  } catch {} // thrown by code of the application
}

/** An async logger that fails must not end the process. */
function calmed (answer) {
  Promise.resolve(answer).catch(() => {})
}

// Whether the logger prints lines of this level. Without a logger, Fastify has one with no level and no-op methods. pino has
// isLevelEnabled. For other loggers the name of their level decides.
function prints (log, level) {
  if (typeof log?.[level] !== 'function') return false
  if (typeof log.isLevelEnabled === 'function') return log.isLevelEnabled(level)
  if (typeof log.level !== 'string') return log.warn !== log.trace // abstract-logging uses one function for all levels
  if (level === 'debug') return LEVELS_WITH_DEBUG.has(log.level)
  return !SILENT_FOR_WARNINGS.has(log.level) && !(level === 'info' && log.level === 'warn')
}

/** '1 span', '2 spans'. */
function counted (count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Returns the answer of a function that must not be async. Throws if it is a promise, whose rejection would end the process. */
function atOnce (answer) {
  if (answer === null || typeof answer !== 'object' || typeof answer.then !== 'function') return answer
  answer.then(undefined, () => {})
  throw new TypeError('it must return its answer, not a promise')
}

/**
 * Calls `fn` and returns its answer, or undefined if it throws. All foreign code is called in a guard, and so is our code where the
 * application would catch what it throws. There are three guards: this one if there is nothing to log, Report.attempt if there is, and
 * `guarded` of process-state.js for listeners, which no application calls. Hot code has its own `try`, because the closure costs more
 * than the rest.
 */
function attempt (fn) {
  try {
    return fn()
  } catch {
    return undefined
  }
}

module.exports = { SCAN_MAX, printable, messageOf, counted, Said, Report, atOnce, attempt, warnProcess }
