'use strict'

// Everything that light-trace says while the app runs goes through here: logged once, in one visible line,
// to the app's own logger or, where that would not print it, as a process warning. It cannot throw.

const { Losses } = require('./losses')
const { printable } = require('./printable')

// Levels under which a logger that has no isLevelEnabled prints no warning.
const SILENT_FOR_WARNINGS = new Set(['error', 'fatal', 'silent'])

const LEVELS_WITH_DEBUG = new Set(['trace', 'debug', 'verbose', 'all'])

class Report {
  #log
  #level
  #logged = new Set()
  #losses

  // `level` is OTEL_LOG_LEVEL's: none | error | warn | info | debug | verbose | all.
  constructor (log, level = 'info', clock = undefined) {
    // What is logged after the application is gone is a process warning.
    this.#log = log !== null && typeof log === 'object' ? new WeakRef(log) : null
    this.#level = level
    this.#losses = new Losses(clock)
  }

  // What was found while the options were resolved: each is one line.
  startup ({ warnings, news = [] }) {
    for (const { code, message } of warnings) this.#warn(code, message)
    for (const message of news) this.info(message)
  }

  // One line per code and app. Returns whether it was logged now.
  // `logged`: of whom, where apps share it.
  once (code, message, logged = this.#logged) {
    if (logged.has(code)) return false
    logged.add(code)
    this.#warn(code, message)
    return true
  }

  // What is not as the options say, without harm.
  info (message) {
    this.#news('info', message)
  }

  // What is as the options say: for who looks for it. At info it would be a line among those that users compare.
  debug (message) {
    this.#news('debug', message)
  }

  #news (level, message) {
    if (this.#level === 'none' || this.#level === 'error' || this.#level === 'warn') return
    const log = this.#log?.deref()
    try {
      if (prints(log, level)) log[level](printable(message))
    } catch {
      // It is not logged: it was news, not a loss.
    }
  }

  // At most one line per kind in 30 s. Returns whether it was logged, so that the caller can start its count anew.
  // `losses`: of whom, where apps share it.
  loss (kind, message, losses = this.#losses) {
    if (!losses.isDue(kind)) return false
    this.#warn('LT_WARN_LOSS', message)
    return true
  }

  // What our own code has thrown: a bug, or a file of ours that could not be read. Some are loaded with the first request or span that
  // needs them, and there may be no file descriptor left just then; the next one asks again. Returns whether it was that.
  thrown (error, what) {
    const isUnreadable = typeof error?.syscall === 'string' || error?.code === 'MODULE_NOT_FOUND'
    if (isUnreadable) this.loss('not_loaded', `${what}: a file of light-trace cannot be read just now (${String(error.message).split('\n', 1)[0]})`)
    else this.once('LT_WARN_BUG', `Bug: ${what}: ${error?.stack}`)
    return isUnreadable
  }

  // Once after a loss that was logged.
  recovered (kind, message, losses = this.#losses) {
    if (!losses.close(kind)) return false
    this.#warn('LT_WARN_RECOVERED', message)
    return true
  }

  #warn (code, message) {
    if (this.#level === 'none' || this.#level === 'error') return
    const text = printable(message)
    const log = this.#log?.deref()
    try {
      if (prints(log, 'warn')) return log.warn({ code }, text)
    } catch {
      // A logger that throws has not printed it.
    }
    process.emitWarning(text, { type: 'LightTraceWarning', code })
  }
}

module.exports = { Report }

// Would a line of this level be seen? Fastify without a logger has one whose methods do nothing and which
// has no level; pino knows; other loggers are believed by the name of their level.
function prints (log, level) {
  if (typeof log?.[level] !== 'function') return false
  if (typeof log.isLevelEnabled === 'function') return log.isLevelEnabled(level)
  if (typeof log.level !== 'string') return !isAbstract(log)
  if (level === 'debug') return LEVELS_WITH_DEBUG.has(log.level)
  return !SILENT_FOR_WARNINGS.has(log.level) && !(level === 'info' && log.level === 'warn')
}

// abstract-logging shares one empty function between all its levels.
function isAbstract (log) {
  return log.warn === log.trace && log.warn.name === 'noop'
}
