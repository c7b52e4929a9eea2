'use strict'

// The log records of one application, from its logger's lines and, if the environment asks for it, from exceptions; and their export.
//
//   pino -- tap --> its destination, as before
//            +---> level, trace, rate --> RecordEncoder --> Exporter --> /v1/logs
//   exceptions of spans ----------> +---> light-trace/testing, standard output

const clock = require('../../runtime/timers.js')
const { SAMPLED, SUPPRESS_KEY, parentIn } = require('../../context/trace-context.js')
const { wrongValue } = require('../../config/checks.js')
const { Exporter } = require('../../export/exporter.js')
const { toStdout, oneLine } = require('../../export/stdout.js')
const { Stats } = require('../../export/pipeline.js')
const { ExportRequestPrefix } = require('../../otlp/request.js')
const { RateLimit } = require('../../sampling/sampler.js')
const { read } = require('../../span/attributes.js')
const { Scope } = require('../../span/recording-span.js')
const { kLoggedSpan, symbolOf } = require('../../fastify/keys.js')
const { slowOf } = require('../../fastify/routes.js')
const { RecordEncoder } = require('./record-encoder.js')
const { loggedError } = require('./logged-error.js')
const { plainRecord, recordJson, recordText } = require('./plain.js')
const { redactedLine } = require('./redacted-line.js')
const { holdLines, tapLogger, whenReleased, levelComparisonOf } = require('./tap.js')

const EXCEPTION = 'exception' // the event of a span, and of a record
const SEVERITY_WARN = 13
const SEVERITY_ERROR = 17
const WAITING_MAX = 1000 // lines written before the application is ready
// For loggers whose level numbers fall with severity: by name, syslog's as in https://opentelemetry.io/docs/specs/otel/logs/data-model-appendix/
const SEVERITIES = new Map(Object.entries({
  trace: 1, silly: 1, debug: 5, verbose: 5, info: 9, http: 9, notice: 10, warn: 13, warning: 13, error: 17, err: 17, crit: 18, critical: 18, alert: 19, fatal: 21, emerg: 21, emergency: 21
}))

class AppLogs {
  /** @type {Tracer} */ #tracer
  #settings
  #stats = new Stats()
  #log
  #tap = null
  #stopWaiting = null // stops waiting for another application to release the logger
  #held = null // holds lines back, or null
  #sign // -1 if the logger's level numbers fall with severity
  #minimum // the lowest level that is exported, times #sign
  #unsampledMinimum // the same for lines of an unsampled trace
  #names
  #bindingsKey // pino's symbol for the text of a logger's bindings
  #scope // of lines
  #inherit // the part that copies attributes from a request to its records, or null
  #sink = null // set once the application is open
  #exporter = null
  #show = null // passes records to the collectors of light-trace/testing, in addition to the exporter
  #waiting = []
  #requestLine = null // a line about a request, { request, level, logged }, until its trace begins or the next line is written
  #isClosed = false
  #rates = new Map() // by level, and one for exceptions

  constructor (tracer, app) {
    const { log } = app
    this.#tracer = tracer
    this.#settings = tracer.settings.exportedLogs
    this.#inherit = tracer.parts.get('inherit') ?? null
    this.#log = log
    const { lines, buffer, byCommand, level, unsampledLevel } = this.#settings
    this.#sign = levelComparisonOf(log)(2, 1) ? 1 : -1
    this.checkLevels({ level, unsampledLevel, buffer }, 'logs')
    this.setLevels()
    const live = tracer.parts.get('live-file')?.logs
    tracer.report.attempt('LT_WARN_CONFIG_FILE', 'configFile: its logs have no effect', () => {
      this.checkLevels(live)
      this.setLevels(live)
    })
    this.#names = { messageKey: log[symbolOf(log, 'pino.messageKey')] ?? 'msg', errorKey: log[symbolOf(log, 'pino.errorKey')] ?? 'err', omit: tracer.omit }
    this.#scope = new Scope('pino', typeof log.version === 'string' ? log.version : undefined)
    this.#bindingsKey = symbolOf(log, 'pino.chindings')
    if (!lines && buffer === null) return
    this.#openTap()
    if (this.#tap !== null && buffer !== null) {
      this.#held = holdLines(app, buffer, (request) => slowOf(request) ?? tracer.slow, () => tracer.parts.get('keep')?.settings ?? null, (logged) => this.#printHeld(logged), () => this.#tap.flush())
    } else if (this.#tap === null && (buffer !== null || !byCommand)) {
      tracer.report.warn('LT_WARN_LOGGER', 'logs.export and logs.buffer have no effect: the logger is not pino, is disabled, or another application already exports it')
    }
  }

  #openTap () {
    const log = this.#log
    this.#tap = tapLogger(log, (line, level, logger, given) => this.#onLine(line, level, logger, given), (line, level, logger, given) => this.#isHeld(line, level, logger, given))
    // Exports lines once the other application has closed. It holds no lines: hooks for that must be added before the application is ready.
    if (this.#tap === null) this.#stopWaiting = whenReleased(log, () => this.#openTap())
  }

  /** Throws if a name is not one of the logger's levels. `unsampledLevel` may always be `warn`, its default. */
  checkLevels (names = {}, path = 'configFile.logs') {
    const known = this.#log.levels?.values
    if (typeof known !== 'object') return // not pino: its lines are not exported
    for (const [option, name] of Object.entries(names)) {
      const isOne = name === null || name === undefined || name === 'silent' || Object.hasOwn(known, name) || (option === 'unsampledLevel' && name === 'warn')
      if (!isOne) throw wrongValue(`${path}.${option}`, `one of the logger's levels: ${Object.keys(known).join(', ')}`, name)
    }
  }

  /** Sets which lines are exported, by level names. The options are the default. */
  setLevels ({ level = this.#settings.level, unsampledLevel = this.#settings.unsampledLevel } = {}) {
    this.#minimum = level === null ? -Infinity : this.#rankOf(level)
    this.#unsampledMinimum = this.#rankOf(unsampledLevel)
  }

  /** The rank of a level, which rises with severity. If the logger has no `warn`, its lowest level of at least that severity is used. */
  #rankOf (name) {
    const known = this.#log.levels?.values ?? {}
    if (name === 'silent') return Infinity
    if (Object.hasOwn(known, name)) return known[name] * this.#sign
    return Math.min(...Object.entries(known).filter(([label, level]) => this.#severityOf(level, label) >= SEVERITY_WARN).map(([, level]) => level * this.#sign))
  }

  /**
   * OpenTelemetry's severity number. Each of the six levels has four numbers, so custom levels fit in between; 0 is unknown.
   * https://opentelemetry.io/docs/specs/otel/logs/data-model/#field-severitynumber
   */
  #severityOf (level, label) {
    if (this.#sign === -1) return SEVERITIES.get(label) ?? 0
    return Math.min(Math.max(Math.floor((level - 10) * 0.4) + 1, 1), 24)
  }

  /** Chooses the destination of records. Runs once. */
  decided () {
    this.#sink = this.#chooseSink()
    for (const logged of this.#waiting.splice(0)) this.#accept(logged)
    if (this.#settings.exceptions !== null) this.#tracer.exceptionLog = this
  }

  /** Whether spans keep the events of their exceptions too. */
  get keepsEvents () { return this.#settings.exceptions === 'logs/dup' }

  /** Records the exceptions of a span that is exported. https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-logs/ */
  takeExceptions (span) {
    const { details } = span
    for (const { name, list, time } of details.events) if (name === EXCEPTION) this.#attempt(() => this.#exception(span, list, time))
    if (!this.keepsEvents) details.events = details.events.filter(({ name }) => name !== EXCEPTION)
  }

  #exception (span, list, time) {
    this.#take('exceptions', { line: '', bindings: '', list, eventName: EXCEPTION, scope: span.scope, time, observedTime: time, severityNumber: SEVERITY_ERROR, severityText: 'ERROR', context: span, error: null, inherited: this.#inheritedBy(span) })
  }

  #isHeld (line, level, logger, given) {
    if (this.#held === null) return false
    try {
      if (!this.#held.isBelow(level, logger)) return false
      this.#held.take({ level, ...this.#logged(line, level, logger, given, traceOfLine(this.#tracer.contextManager.active(), logger)) }, logger)
      return true
    } catch (error) { // the line is printed
      this.#tracer.report.failed('LT_WARN_BUG', 'a log line was not held', error)
      return false
    }
  }

  /** Prints a held line, with an added member `buffered`. */
  #printHeld ({ level, ...logged }) {
    const end = logged.line.lastIndexOf('}')
    if (end !== -1) logged.line = `${logged.line.slice(0, end)},"buffered":true${logged.line.slice(end)}`
    logged.observedTime = clock.now()
    // The request has ended, so no caller could catch an error of the destination.
    this.#tracer.report.attempt('LT_WARN_CALLBACK', "the logger's destination threw where a held line was printed", () => this.#tap.print(logged.line, level))
    if (!this.#settings.lines) return
    this.#stats.accepted++
    this.#accept(logged)
  }

  // HOT, once per line where lines are exported. Budget: 1 object.
  #onLine (line, level, logger, given) {
    if (!this.#settings.lines) return
    this.#letGo(undefined)
    try {
      if (level * this.#sign < this.#minimum) return
      const active = this.#tracer.contextManager.active()
      if (active !== undefined && active.getValue(SUPPRESS_KEY) === true) return
      const context = traceOfLine(active, logger)
      if (context !== undefined && (context.flags & SAMPLED) === 0 && level * this.#sign < this.#unsampledMinimum) return
      const logged = this.#logged(line, level, logger, given, context)
      const request = context === undefined ? read(given, 'req') : undefined
      if (request !== undefined) this.#requestLine = { request, level, logged }
      else this.#take(level, logged)
    } catch (error) { // the logger is not really pino: the line is printed anyway
      this.#tracer.report.failed('LT_WARN_BUG', 'a log line was not exported', error)
    }
  }

  /** @param {number | string} kind that has its own limit per second: a level, or 'exceptions' */
  #take (kind, logged) {
    this.#stats.accepted++
    if (this.#isTooMuch(kind, logged.time)) this.#stats.drop('rate', 1)
    else this.#accept(logged)
  }

  /**
   * Fastify logs each incoming request before the trace exists. The record of that line gets the trace that begins next, if that trace
   * belongs to the logged request.
   */
  begun (request, span) {
    this.#letGo(this.#requestLine?.request === request ? span : undefined)
  }

  #letGo (span) {
    if (this.#requestLine === null) return
    const { level, logged } = this.#requestLine
    this.#requestLine = null
    logged.context = span
    logged.inherited = this.#inheritedBy(span)
    if (span !== undefined && (span.flags & SAMPLED) === 0 && level * this.#sign < this.#unsampledMinimum) return
    this.#attempt(() => this.#take(level, logged))
  }

  /** Catches errors of a test's collector, since this runs where a request begins or a span ends. */
  #attempt (fn) { this.#tracer.report.attempt('LT_WARN_BUG', 'a log line was not exported', fn) }

  #logged (line, level, logger, given, context) {
    const time = clock.now()
    const severityText = logger?.levels?.labels?.[level] ?? ''
    const bindings = logger?.[this.#bindingsKey]
    return { line, bindings: typeof bindings === 'string' ? bindings : '', list: null, eventName: '', scope: this.#scope, time, observedTime: time, severityNumber: this.#severityOf(level, severityText), severityText, context, error: loggedError(read(given, this.#names.errorKey)), inherited: this.#inheritedBy(context) }
  }

  #inheritedBy (context) { return this.#inherit === null || context === undefined ? null : this.#inherit.of(context.request) }

  #accept (logged) {
    if (this.#isClosed) this.#tracer.lostAfterClose(this.#stats, 'log line came')
    else if (this.#sink === null) {
      if (this.#waiting.length < WAITING_MAX) this.#waiting.push(logged)
      else this.#stats.drop('queue_full', 1)
    } else {
      const isAbsent = this.#exporter !== null && this.#exporter.isAbsent
      if (isAbsent) this.#stats.drop('non_retryable', 1)
      if (isAbsent && this.#show === null) return
      logged.line = redactedLine(logged.line, this.#tracer.redactor)
      if (!isAbsent) this.#sink.accept(logged)
      if (this.#show !== null) this.#show(logged)
    }
  }

  /** Whether the limit per second for this kind is exceeded. */
  #isTooMuch (kind, now) {
    const { maxPerSecond } = this.#settings
    let rate = this.#rates.get(kind)
    if (rate === undefined) this.#rates.set(kind, rate = new RateLimit(maxPerSecond))
    if (rate.take(now)) return false
    const what = typeof kind === 'number' ? `lines of level ${kind}` : kind
    this.#tracer.report.warn('LT_WARN_LOSS', `more than ${maxPerSecond} ${what} in a second: the rest are not exported (\`logs.maxPerSecond\`)`, 'log rate')
    return true
  }

  // ---- where lines go

  #chooseSink () {
    const { settings } = this.#tracer
    const collectors = (settings.spanProcessors ?? []).filter((processor) => typeof processor.onLog === 'function')
    const show = (logged) => collectors.forEach((collector) => collector.onLog(plainRecord(logged, this.#names)))
    if (collectors.length > 0 && settings.exporter.idle) return this.#delivering(show)
    if (collectors.length > 0) this.#show = show
    const { exporter, isText } = this.#settings
    if (exporter === null) {
      const write = toStdout()
      const textOf = isText ? (logged) => oneLine(recordText(logged, this.#names)) : (logged) => recordJson(settings.resource, logged, this.#names)
      return this.#delivering((logged) => write(textOf(logged)))
    }
    this.#exporter = this.#toCollector(exporter)
    return new RecordEncoder(this.#exporter, this.#settings, this.#names)
  }

  #delivering (deliver) {
    return {
      accept: (logged) => {
        this.#stats.delivered++
        deliver(logged)
      }
    }
  }

  #toCollector (exporter) {
    const { output, settings, report } = this.#tracer
    const { flushDelayMs, maxRecords } = this.#settings
    return new Exporter({
      settings: { ...settings, exporter, buffer: { maxBytes: settings.buffer.maxBytes, flushDelayMs }, batch: { maxSpans: maxRecords } },
      prefix: new ExportRequestPrefix(settings.resource),
      stats: this.#stats,
      report,
      suppress: output.suppress,
      noun: 'log record',
      optional: { code: 'LT_WARN_LOGS_ENDPOINT', off: 'logs: { export: false }' },
      http: output.shareConnection(exporter),
      budget: output.budget
    })
  }

  /** Whether lines are waiting for the choice of their destination. */
  get isWaiting () { return this.#waiting.length > 0 }

  /** Removes those lines, for another registration of the application. */
  handOver () { return this.#waiting.splice(0) }

  takeOver (lines) {
    if (!this.#settings.lines) return
    for (const logged of lines) {
      this.#stats.accepted++
      this.#accept(logged)
    }
  }

  /** The counters of records, for `app.lightTrace.stats()`. */
  stats () {
    this.#letGo(undefined)
    const { spans, exports, lastError } = this.#stats.snapshot('', this.#waiting.length + (this.#exporter?.queued ?? 0), this.#exporter?.inFlight ?? 0, null)
    const { started, ended, folded, unsampled, notKept, handedOver, thinned, ...records } = spans
    return { logs: { records, exports, lastError, ...this.#held !== null && { forgotten: this.#held.forgotten } } }
  }

  async flush (options) {
    this.#letGo(undefined)
    await this.#exporter?.flush(options)
  }

  async close () {
    this.#stopWaiting?.()
    this.#tap?.release()
    this.#held?.release()
    this.#letGo(undefined)
    this.#isClosed = true
    if (this.#sink === null) this.#stats.drop('after_shutdown', this.#waiting.splice(0).length)
    await this.#exporter?.close()
  }
}

/** The span that a line belongs to: the active one, else that of its logger's request. */
function traceOfLine (active, logger) { return parentIn(active) ?? logger?.[kLoggedSpan] }

module.exports = { attach: (tracer, app) => new AppLogs(tracer, app) }
