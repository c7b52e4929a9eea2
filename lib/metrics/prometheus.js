'use strict'

// Metrics as text for Prometheus: the text format 0.0.4, and OpenMetrics 1.0, which has exemplars and units. It comes in pieces,
// so that two thousand series neither hold the event loop nor lie in memory at once. It is cumulative, whatever OTLP is sent.

const { toHrTime } = require('../span/clock')
const { mergeBuckets } = require('./histograms')

// Names, labels and numbers as Prometheus has them.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/

const TIMES = { d: 'days', h: 'hours', min: 'minutes', s: 'seconds', ms: 'milliseconds', us: 'microseconds', ns: 'nanoseconds' }
const BINARY = { By: 'bytes', KiBy: 'kibibytes', MiBy: 'mebibytes', GiBy: 'gibibytes', TiBy: 'tibibytes' }
const DECIMAL = { KBy: 'kilobytes', MBy: 'megabytes', GBy: 'gigabytes', TBy: 'terabytes', '%': 'percent' }
const PHYSICAL = { m: 'meters', V: 'volts', A: 'amperes', J: 'joules', W: 'watts', g: 'grams', Cel: 'celsius', Hz: 'hertz' }
const UNITS = { ...TIMES, ...BINARY, ...DECIMAL, ...PHYSICAL }
const PER = { s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week', mo: 'month', y: 'year' }

/** The unit as a word, '' where there is none. What stands in braces is a comment. */
function unitName (unit) {
  const plain = unit.replace(/\{[^}]*\}/g, '').trim()
  if (plain === '' || plain === '1') return ''
  const [of, ...others] = plain.split('/')
  const per = others.join('/')
  const words = of === '' ? [] : [UNITS[of] ?? clean(of)]
  if (per !== '') words.push(`per_${PER[per] ?? clean(per)}`)
  return words.join('_')
}

/** The name of a metric's family, without the `_total` of counters. */
function familyName ({ name, unit, kind, isMonotonic }) {
  const isCounter = kind === 'sum' && isMonotonic
  const suffix = unit === '1' && kind === 'gauge' ? 'ratio' : unitName(unit)
  let family = clean(name).replace(/_+/g, '_').replace(/_$/, '')
  if (isCounter) family = family.replace(/_total$/, '')
  if (suffix !== '' && !`_${family}`.endsWith(`_${suffix}`)) family += `_${suffix}`
  return family
}

function clean (name) {
  const text = name.replace(/[^a-zA-Z0-9_:]/g, '_')
  return /^[0-9]/.test(text) ? `_${text}` : text
}

/** A flat list of attributes as labels, without braces. Keys that become the same name share it, with their values joined. */
function labelsOf (list) {
  const values = new Map()
  for (let i = 0; i < list.length; i += 2) {
    const name = labelName(list[i])
    const value = typeof list[i + 1] === 'string' ? list[i + 1] : JSON.stringify(list[i + 1])
    values.set(name, values.has(name) ? `${values.get(name)};${value}` : value)
  }
  return Array.from(values, ([name, value]) => `${name}="${escaped(value, true)}"`).join()
}

function labelName (key) {
  const name = key.replace(/[^a-zA-Z0-9_]/g, '_')
  return /^[0-9]/.test(name) ? `key_${name}` : name
}

function escaped (text, withQuotes) {
  const plain = text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
  return withQuotes ? plain.replace(/"/g, '\\"') : plain
}

function numberText (value) {
  return value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value)
}

/** A bucket's bound; OpenMetrics wants it to look like a float. */
function boundText (bound, isOpenMetrics) {
  const text = numberText(bound)
  return isOpenMetrics && Number.isInteger(bound) && !text.includes('e') ? `${text}.0` : text
}

const TEXT = 'text/plain; version=0.0.4; charset=utf-8'
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

// A histogram's series has some twenty lines, each with an exemplar at the worst.
const SERIES_PER_PIECE = 16
// Exponential buckets are written as explicit ones. At this scale there are two for each power of two: some
// forty from a millisecond to a hundred seconds.
const SCALE_SHOWN_MAX = 1

/**
 * Yields the text in pieces.
 * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
 * @param {object} resource its attributes, which become target_info
 * @param {{ isOpenMetrics: boolean, ownScope: string }} options the metrics of the scope named `ownScope` have no scope labels
 */
function * exposition (scopes, resource, { isOpenMetrics, ownScope }) {
  yield targetInfo(resource, isOpenMetrics)
  for (const { name, members } of families(scopes).values()) {
    const [{ metric: first }] = members
    let piece = headText(name, first, isOpenMetrics)
    for (const { metric, scope } of members) {
      const scopeLabels = scope.name === ownScope ? '' : scopeLabelsOf(scope)
      let count = 0
      for (const series of metric.list.slice()) {
        if (series.labels === '') series.labels = [labelsOf(series.attributes), scopeLabels].filter((text) => text !== '').join()
        const linesOf = typeOf(metric) === 'histogram' ? histogramLines : numberLine
        piece += linesOf(name, metric, series, isOpenMetrics)
        if (++count % SERIES_PER_PIECE !== 0) continue
        yield piece
        piece = ''
      }
    }
    if (piece !== '') yield piece
  }
  if (isOpenMetrics) yield '# EOF\n'
}

/** Metrics by their Prometheus name. Two of one name must stand together, and be of one type. */
function families (scopes) {
  const found = new Map()
  for (const { scope, metrics } of scopes) {
    for (const metric of metrics) {
      if (metric.list.length === 0) continue
      if (metric.prometheusName === '') metric.prometheusName = familyName(metric)
      const name = metric.prometheusName
      const family = found.get(name)
      if (family === undefined) found.set(name, { name, members: [{ metric, scope }] })
      else if (typeOf(family.members[0].metric) === typeOf(metric)) family.members.push({ metric, scope })
    }
  }
  return found
}

function typeOf ({ kind, isMonotonic }) {
  if (kind.endsWith('istogram')) return 'histogram'
  return kind === 'sum' && isMonotonic ? 'counter' : 'gauge'
}

function headText (name, metric, isOpenMetrics) {
  const type = typeOf(metric)
  const shown = type === 'counter' && !isOpenMetrics ? `${name}_total` : name
  let text = metric.description === '' ? '' : `# HELP ${shown} ${escaped(metric.description, isOpenMetrics)}\n`
  text += `# TYPE ${shown} ${type}\n`
  const unit = unitName(metric.unit)
  return isOpenMetrics && unit !== '' && name.endsWith(`_${unit}`) ? `${text}# UNIT ${name} ${unit}\n` : text
}

function numberLine (name, metric, { labels, value, exemplars }, isOpenMetrics) {
  const isCounter = typeOf(metric) === 'counter'
  const exemplar = isOpenMetrics && isCounter && exemplars !== null ? exemplarText(exemplars[0]) : ''
  return `${name}${isCounter ? '_total' : ''}${labels === '' ? '' : `{${labels}}`} ${numberText(value)}${exemplar}\n`
}

function histogramLines (name, metric, series, isOpenMetrics) {
  const { labels, sum } = series
  const begin = `${name}_bucket{${labels === '' ? '' : `${labels},`}le="`
  let text = ''
  let total = 0
  const buckets = metric.kind === 'histogram' ? explicitBuckets(series) : exponentialBuckets(series)
  for (const { bound, count, exemplar } of buckets) {
    total += count
    text += `${begin}${boundText(bound, isOpenMetrics)}"} ${total}${isOpenMetrics ? exemplarText(exemplar) : ''}\n`
  }
  const braced = labels === '' ? '' : `{${labels}}`
  return `${text}${name}_sum${braced} ${numberText(sum)}\n${name}_count${braced} ${total}\n`
}

function explicitBuckets ({ bounds, counts, exemplars }) {
  return counts.map((count, index) => ({ bound: bounds[index], count, exemplar: exemplars === null ? null : exemplars[index] }))
}

/** Neighbouring buckets are added up to a scale of one: their bounds lie on those of the finer scales. */
function exponentialBuckets (series) {
  const scale = Math.min(series.scale, SCALE_SHOWN_MAX)
  const { offset, counts } = mergeBuckets(series.buckets(), series.scale - scale)
  const exemplars = series.exemplars === null ? [] : series.exemplars.filter((exemplar) => exemplar !== null)
  let below = 0 // what of zero and less has no bucket of its own
  const bucketOf = (bound, count) => {
    const exemplar = exemplars.find(({ value }) => value > below && value <= bound) ?? null
    below = bound
    return { bound, count, exemplar }
  }
  const buckets = series.zeroCount === 0 ? [] : [{ bound: 0, count: series.zeroCount, exemplar: null }]
  counts.forEach((count, index) => buckets.push(bucketOf(2 ** ((offset + index + 1) / 2 ** scale), count)))
  buckets.push(bucketOf(Infinity, 0))
  return buckets
}

function exemplarText (exemplar) {
  if (exemplar === null) return ''
  const { value, timeMs, traceId, spanId } = exemplar
  const [seconds, nanos] = toHrTime(timeMs)
  const time = `${seconds}.${String(Math.floor(nanos / 1e6)).padStart(3, '0')}`
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${numberText(value)} ${time}`
}

function targetInfo (resource, isOpenMetrics) {
  const list = []
  for (const key of Object.keys(resource)) list.push(key, resource[key])
  const [name, type] = isOpenMetrics ? ['target', 'info'] : ['target_info', 'gauge']
  return `# HELP ${name} Target metadata\n# TYPE ${name} ${type}\ntarget_info{${labelsOf(list)}} 1\n`
}

function scopeLabelsOf ({ name, version = '' }) {
  return labelsOf(version === '' ? ['otel_scope_name', name] : ['otel_scope_name', name, 'otel_scope_version', version])
}

/** The content type that an Accept header asks for. */
function negotiate (accept) {
  if (typeof accept !== 'string') return TEXT
  const plain = quality(accept, /^text\/plain\b|^\*\/\*|^text\/\*/)
  return quality(accept, /^application\/openmetrics-text\b/) > plain ? OPEN_METRICS : TEXT
}

/** The best weight that is given to a type. An OpenMetrics version that we do not speak does not count. */
function quality (accept, type) {
  let best = 0
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';').map((part) => part.trim())
    if (!type.test(name)) continue
    const version = parameters.find((parameter) => parameter.startsWith('version='))?.slice(8)
    if (name.startsWith('application/') && version !== undefined && version !== '1.0.0' && version !== '0.0.1') continue
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    const value = weight === undefined ? 1 : Number(weight.slice(2))
    if (value > best) best = value
  }
  return best
}

module.exports = { exposition, negotiate, TEXT, OPEN_METRICS }
