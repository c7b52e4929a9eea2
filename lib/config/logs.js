'use strict'

// The options of exported log lines: which, and where they go. Loaded only where they are exported.

const { COUNT_MAX, DURATION_MAX_MS, EMPTY, anyOf, isObject, notNegative, object, orBoolean } = require('./checks')
const { checkExporter, exporterOfSignal } = require('./exporter')

const KINDS = ['otlp', 'otlp/stdout', 'console', 'none']
const EXCEPTION_SIGNALS = ['logs', 'logs/dup']
const DEFAULT_FLUSH_DELAY_MS = 1000
const DEFAULT_MAX_PER_SECOND = 10_000 // of one level: more than a person or a bill can take
const DEFAULT_TIMEOUT_MS = 30_000

const checkLevel = anyOf("the name of one of the logger's levels", (value) => typeof value === 'string' && value.trim() !== '')

const checkLogs = orBoolean(object({
  export: orBoolean(checkLogExporter, true, false),
  level: checkLevel,
  unsampledLevel: checkLevel,
  buffer: checkLevel,
  maxPerSecond: notNegative('lines a second')
}), true, false)

module.exports = { checkLogs, resolveLogs }

function checkLogExporter (path, value) {
  anyOf("true, false, 'otlp', 'otlp/stdout', 'console', 'none' or an object with a url", (kind) => isObject(kind) || KINDS.includes(kind))(path, value)
  return checkExporter(path, value)
}

/** @returns {object | null} null where neither code nor environment asks for lines or exceptions to be exported */
function resolveLogs (options, env, limits, exporterVariable, exceptionVariable) {
  const given = typeof options.logs === 'object' ? options.logs : EMPTY
  const named = kindOf(given, options, env, exporterVariable)
  const [exceptions = null] = env.namesOf(exceptionVariable, EXCEPTION_SIGNALS) ?? []
  if (named === 'none' && exceptions === null && given.buffer === undefined) return null
  const kind = named === 'none' ? 'otlp' : named
  if (env.text('OTEL_BLRP_MAX_QUEUE_SIZE') !== undefined) {
    env.inform('OTEL_BLRP_MAX_QUEUE_SIZE is ignored: log records and spans share a buffer that is limited in bytes, by buffer.maxBytes')
  }
  const limit = (...names) => env.integer(names, { max: COUNT_MAX })
  return Object.freeze({
    exporter: kind === 'otlp' ? exporterOfSignal('LOGS', isObject(given.export) ? given.export : EMPTY, options, env, 'OTEL_BLRP_EXPORT_TIMEOUT', DEFAULT_TIMEOUT_MS) : null,
    isText: kind === 'console', // where there is no exporter: text in place of OTLP JSON
    lines: named !== 'none',
    exceptions, // 'logs': records in place of the spans' events; 'logs/dup': both
    byCommand: env.text('LIGHT_TRACE_VIEWER') !== undefined, // `npx light-trace` asks for lines, whatever the logger is
    level: given.level ?? null, // null: whatever the logger writes
    unsampledLevel: given.unsampledLevel ?? 'warn',
    buffer: given.buffer ?? null, // the least level of lines that are held with their request
    maxPerSecond: given.maxPerSecond ?? DEFAULT_MAX_PER_SECOND,
    flushDelayMs: env.integer(['OTEL_BLRP_SCHEDULE_DELAY'], { max: DURATION_MAX_MS }) ?? options.buffer?.flushDelayMs ?? DEFAULT_FLUSH_DELAY_MS,
    maxRecords: env.integer(['OTEL_BLRP_MAX_EXPORT_BATCH_SIZE'], { min: 1 }) ?? Infinity,
    attributes: limit('OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT') ?? limits.attributes,
    attributeValueLength: limit('OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT') ?? limits.attributeValueLength
  })
}

/** The option, else the variable. `true` means the exporter of spans, where that is one of ours. */
function kindOf (given, options, env, name) {
  if (given.export === false) return 'none'
  if (isObject(given.export)) return given.export.kind
  const [named] = env.namesOf(name, KINDS) ?? []
  if (given.export === undefined || named !== undefined) return named ?? 'none'
  const spans = options.exporter?.kind
  return spans === 'otlp/stdout' || spans === 'console' ? spans : 'otlp'
}
