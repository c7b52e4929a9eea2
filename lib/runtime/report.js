'use strict'

// All that light-trace logs: in one line, as often as lib/runtime/codes.json says of its code, to the app's logger or, where that would not
// print it, as a process warning.

const { monotonicNow } = require('./timers.js')
/** @type {Record<Code, { often: string, per?: string }>} */
const CODES = require('./codes.json')

const PRINTABLE_MAX = 256
// What is looked at before filtering; without it a 100 MB message would be walked to its end.
const SCAN_MAX = 4 * PRINTABLE_MAX

// What follows the ESC of an ANSI sequence: the bracket, parameters, one final byte.
const SEQUENCE = /^\[[ -?]*[^]?/
const SPACING = /[\t-\r\x85\u2028\u2029]/g
// By ranges: a class of Unicode takes ICU at every start.
const CONTROLS = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g // eslint-disable-line no-control-regex

/** Makes text from outside fit for a log line: without terminal escapes, line breaks, and controls that reverse what is read. */
function printable (value, max = PRINTABLE_MAX) {
  const text = typeof value === 'string' ? value : plainText(value)
  const [first, ...others] = text.slice(0, SCAN_MAX).split('\x1b')
  const plain = first + others.map((part) => part.replace(SEQUENCE, '')).join('')
  // The cut may halve a surrogate pair, and the text may have come with halves of its own.
  return plain.replace(SPACING, ' ').replace(CONTROLS, '').slice(0, max).toWellFormed()
}

// Objects are not asked: their toString is code of the application.
function plainText (value) {
  if (value === null || typeof value === 'undefined') return ''
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' ? `${value}` : `[${typeof value}]`
}

/** The message of what was thrown, or what was thrown if it has none: any value, and its code may throw too. */
function messageOf (error, key = 'message') {
  return attempt(() => printable(error[key] ?? error)) ?? printable(error)
}

const SUBJECTS_MAX = 100 // of a code: an application may make names of its data

// For how long a code, or a code with its subject, is not logged again.
const AGAIN_AFTER_MS = { thrown: Infinity, once: Infinity, 'once in 30 s': 30_000, 'each time': -Infinity }

/** What was logged, by one application or by all that share a collector. */
class Said {
  #now
  #at = new Map() // code -> subject -> when
  #losses = new Set() // subjects of losses that were logged and are not over

  constructor (now = monotonicNow) {
    this.#now = now
  }

  /** Whether this is to be logged now: as often as the table says, and after so many subjects as one for all others. */
  isDue (code, subject) {
    const { often, per } = CODES[code] ?? CODES.LT_WARN_BUG // unknown: of another version, which shares a collector
    const at = this.#at.get(code) ?? new Map()
    const key = per === undefined || (at.size >= SUBJECTS_MAX && !at.has(subject)) ? '' : subject
    const now = this.#now()
    if (now - (at.get(key) ?? -Infinity) < AGAIN_AFTER_MS[often]) return false
    this.#at.set(code, at.set(key, now))
    if (code === 'LT_WARN_LOSS') this.#losses.add(subject)
    return true
  }

  /** Ends a loss. Returns whether it was logged and not yet over. */
  isOver (subject) { return this.#losses.delete(subject) }
}

// Levels under which a logger that has no isLevelEnabled prints no warning.
const SILENT_FOR_WARNINGS = new Set(['error', 'fatal', 'silent'])
const LEVELS_WITH_DEBUG = new Set(['trace', 'debug', 'verbose', 'all'])

class Report {
  #log
  #level
  #said

  // `level` is OTEL_LOG_LEVEL's: none | error | warn | info | debug | verbose | all.
  constructor (log, level = 'info', said = new Said()) {
    // What is logged after the application is gone is a process warning.
    this.#log = log !== null && typeof log === 'object' ? new WeakRef(log) : null
    this.#level = level
    this.#said = said
  }

  /** One that logs to the same application what nobody else who shares `said` has logged. */
  sharing (said) { return new Report(this.#log?.deref(), this.#level, said) }

  /** @param {{ warnings: readonly Warning[], news?: readonly string[] }} settings a line for each */
  startup ({ warnings, news = [] }) {
    for (const { code, message } of warnings) this.warn(code, message)
    for (const message of news) this.info(message)
  }

  /**
   * Logs a line as often as lib/runtime/codes.json says of its code. Returns whether it did.
   * @param {Code} code
   * @param {string} subject what failed once must not hide what fails always
   */
  warn (code, message, subject = message) {
    if (!this.#said.isDue(code, subject)) return false
    this.#print(code, message)
    return true
  }

  /** @param {Code} code @param {string} what it says of the error, and the subject where none is given */
  failed (code, what, error, subject = what) {
    const isOurs = code === 'LT_WARN_BUG'
    return this.warn(code, `${isOurs ? 'Bug: ' : ''}${what}: ${messageOf(error, isOurs ? 'stack' : 'message')}`, subject)
  }

  /** `attempt` below, with a line where `fn` throws or returns a promise. @param {Code} code */
  attempt (code, what, fn) {
    try {
      return atOnce(fn())
    } catch (error) {
      this.failed(code, what, error)
    }
  }

  /** Logs that a loss which was logged is over. Returns whether it did. */
  recovered (subject, message) { return this.#said.isOver(subject) && this.warn('LT_WARN_RECOVERED', message) }

  /** Logs what does no harm: at `info` what is not as the options say, at `debug` what is. */
  info (message, level = 'info') {
    if (['none', 'error', 'warn'].includes(this.#level)) return
    const log = this.#log?.deref()
    attempt(() => prints(log, level) && calmed(log[level](printable(message)))) // it was news, not a loss
  }

  #print (code, message) {
    if (this.#level === 'none' || this.#level === 'error') return
    const text = printable(message)
    const log = this.#log?.deref()
    try {
      if (prints(log, 'warn')) return calmed(log.warn({ code }, text))
    } catch {} // a logger that throws has not printed it
    warnProcess(text, code)
  }
}

/**
 * Makes a process warning. Node would name one made of text by assignment, which throws where the application has frozen
 * Error.prototype: in a socket's callback that ends the process.
 * @param {Code} code
 */
function warnProcess (text, code) {
  try {
    const warning = Object.defineProperties(new Error(text), { name: { value: 'LightTraceWarning' }, code: { value: code } })
    Error.captureStackTrace(warning, warnProcess)
    process.emitWarning(warning)
  } catch {} // by a function of the application's
}

/** An async logger must not end the process when it fails. */
function calmed (answer) {
  Promise.resolve(answer).catch(() => {})
}

// Whether a line of this level would be seen. Fastify without a logger has one whose methods do nothing and which has no
// level; pino knows; other loggers are believed by the name of their level.
function prints (log, level) {
  if (typeof log?.[level] !== 'function') return false
  if (typeof log.isLevelEnabled === 'function') return log.isLevelEnabled(level)
  if (typeof log.level !== 'string') return log.warn !== log.trace // abstract-logging has one function for all
  if (level === 'debug') return LEVELS_WITH_DEBUG.has(log.level)
  return !SILENT_FOR_WARNINGS.has(log.level) && !(level === 'info' && log.level === 'warn')
}

/** '1 span', '2 spans'. */
function counted (count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The answer of a function that is not to be async. Throws where it is a promise, whose rejection would end the process. */
function atOnce (answer) {
  if (answer === null || typeof answer !== 'object' || typeof answer.then !== 'function') return answer
  answer.then(undefined, () => {})
  throw new TypeError('it must return its answer, not a promise')
}

/**
 * What code that is not ours answers; undefined where it throws. The guard around all of that code, and around ours where the application
 * would get what it throws, in three forms: this one where there is nothing to say, a report's where there is, and `guarded` of
 * process-state.js for listeners, which no application calls. What is hot has a `try` of its own: the closure costs more than the rest.
 */
function attempt (fn) {
  try {
    return fn()
  } catch {
    return undefined
  }
}

module.exports = { SCAN_MAX, printable, messageOf, counted, Said, Report, atOnce, attempt, warnProcess }
