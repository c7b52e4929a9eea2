'use strict'

// Metrics as text for Prometheus: the text format 0.0.4, and OpenMetrics 1.0, which has exemplars and units. The text is generated
// in pieces, so that two thousand series neither block the event loop nor are in memory at once. Values are cumulative, even if
// OTLP sends deltas.

const cluster = require('node:cluster')
const { createServer } = require('node:http')
const { pipeline } = require('node:stream')
const clock = require('../../runtime/timers.js')
const { startOf } = require('./encoder.js')
const { mergeBuckets } = require('./histograms.js')

// Names, labels and numbers in Prometheus form.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/

// A unit may be any text, even `constructor`, so these tables have no prototype.
const TIMES = { d: 'days', h: 'hours', min: 'minutes', s: 'seconds', ms: 'milliseconds', us: 'microseconds', ns: 'nanoseconds' }
const BINARY = { By: 'bytes', KiBy: 'kibibytes', MiBy: 'mebibytes', GiBy: 'gibibytes', TiBy: 'tibibytes' }
const DECIMAL = { KBy: 'kilobytes', MBy: 'megabytes', GBy: 'gigabytes', TBy: 'terabytes', '%': 'percent' }
const PHYSICAL = { m: 'meters', V: 'volts', A: 'amperes', J: 'joules', W: 'watts', g: 'grams', Cel: 'celsius', Hz: 'hertz' }
const UNITS = { __proto__: null, ...TIMES, ...BINARY, ...DECIMAL, ...PHYSICAL }
const PER = { __proto__: null, s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week', mo: 'month', y: 'year' }

/** The unit as a word, or '' without one. Text in braces, like `{request}`, is an annotation and is left out. */
function unitName (unit) {
  const plain = unit.replace(/\{[^{}]*\}/g, '').trim()
  if (plain === '' || plain === '1') return ''
  const [numerator, ...denominators] = plain.split('/')
  const per = denominators.join('/')
  const words = numerator === '' ? [] : [UNITS[numerator] ?? clean(numerator)]
  if (per !== '') words.push(`per_${PER[per] ?? clean(per)}`)
  return words.join('_')
}

/** The name of a metric's family, without the `_total` suffix of counters. */
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

// Prometheus reserves these label names, and rejects a whole scrape if one of them appears twice in a series. A label with a reserved
// name gets the prefix `exported_`, which is what Prometheus itself does with the labels of a target.
const RESERVED = /^(?:__|le$|otel_scope_(?:name|version)$)/

/**
 * Writes a flat list of attributes as labels, without braces, sorted by key, so that equal attributes give equal text. If several keys
 * become the same label name, their values are joined. Empty values are left out, because Prometheus treats them as missing labels.
 */
function labelsOf (list) {
  const pairs = []
  for (let i = 0; i < list.length; i += 2) pairs.push([list[i], list[i + 1]])
  const values = new Map()
  for (const [key, given] of pairs.sort(([a], [b]) => a < b ? -1 : 1)) {
    const name = labelName(key)
    const value = typeof given === 'object' ? JSON.stringify(given) : String(given)
    if (name === '' || value === '') continue
    values.set(name, values.has(name) ? `${values.get(name)};${value}` : value)
  }
  return Array.from(values, ([name, value]) => labelText(name, value)).join()
}

function labelName (key) {
  const name = key.replace(/[^a-zA-Z0-9_]/g, '_')
  if (RESERVED.test(name)) return `exported_${name}`
  return /^[0-9]/.test(name) ? `key_${name}` : name
}

function labelText (name, value) {
  return `${name}="${escaped(value, true)}"`
}

function escaped (text, withQuotes) {
  const plain = text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
  return withQuotes ? plain.replace(/"/g, '\\"') : plain
}

function numberText (value) {
  return value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value)
}

/** The `le` label of each bucket's line, up to its count. OpenMetrics requires a bound to look like a float. */
function boundTexts (bounds, isOpenMetrics) {
  return Array.from(bounds, (bound) => {
    const text = numberText(bound)
    return `le="${isOpenMetrics && Number.isInteger(bound) && !text.includes('e') ? `${text}.0` : text}"} `
  })
}

const TEXT = 'text/plain; version=0.0.4; charset=utf-8'
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

// Exponential buckets are written as explicit ones. At this scale there are two for each power of two: about
// 34 from a millisecond to a hundred seconds.
const SCALE_SHOWN_MAX = 1

/**
 * Yields the text in pieces of one series each. The text is always valid: if several series end up with the same name and labels,
 * only the first is written.
 * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
 * @param {object} resource the resource's attributes, which become target_info
 * @param {{ isOpenMetrics: boolean, ownScope: string, onDropped (metric: Metric, count: number): void }} options ownScope: the
 *   scope whose metrics have no scope labels and come first; onDropped: called for series that are left out
 */
function * exposition (scopes, resource, { isOpenMetrics, ownScope, onDropped }) {
  const now = clock.nanosOf(clock.now())
  yield targetInfo(resource, isOpenMetrics)
  for (const family of families(scopes, ownScope, onDropped)) {
    yield headText(family, isOpenMetrics)
    const seen = new Set()
    for (const { metric, scope } of family.members) {
      const scopeLabels = scope.name === ownScope ? '' : scopeLabelsOf(scope)
      const ends = metric.bounds === null ? null : boundTexts(metric.bounds, isOpenMetrics) // shared by all its series
      for (const series of metric.list.slice()) {
        if (series.labels === '') series.labels = [labelsOf(series.attributes), scopeLabels].filter((text) => text !== '').join()
        if (seen.has(series.labels)) onDropped(metric, 1)
        else yield seriesText(family, metric, series, isOpenMetrics, ends, now)
        seen.add(series.labels)
      }
    }
  }
  if (isOpenMetrics) yield '# EOF\n'
}

// The suffixes of a family's samples. No other family may use one of the resulting names.
const SUFFIXES = { gauge: [''], counter: ['', '_total', '_created'], histogram: ['', '_bucket', '_sum', '_count', '_created'] }

/** Groups metrics by Prometheus name. Metrics with the same name and type share a family; if the types differ, only the first is kept. */
function families (scopes, ownScope, onDropped) {
  const taken = new Map([['target', null], ['target_info', null]]) // name of a family or its samples -> the family
  const found = []
  const ownFirst = Array.from(scopes).sort((a, b) => Number(b.scope.name === ownScope) - Number(a.scope.name === ownScope))
  for (const { scope, metrics } of ownFirst) {
    for (const metric of metrics) {
      if (metric.list.length === 0) continue
      const name = familyName(metric)
      const type = typeOf(metric)
      const names = SUFFIXES[type].map((suffix) => name + suffix)
      let family = taken.get(name)
      if (names.every((each) => !taken.has(each))) {
        found.push(family = { name, type, members: [] })
        for (const each of names) taken.set(each, family)
      }
      if (family?.name === name && family.type === type) family.members.push({ metric, scope })
      else onDropped(metric, metric.list.length)
    }
  }
  return found
}

function typeOf ({ kind, isMonotonic }) {
  if (kind.endsWith('istogram')) return 'histogram'
  return kind === 'sum' && isMonotonic ? 'counter' : 'gauge'
}

function headText ({ name, type, members }, isOpenMetrics) {
  const [{ metric }] = members
  const shown = type === 'counter' && !isOpenMetrics ? `${name}_total` : name
  let text = metric.description === '' ? '' : `# HELP ${shown} ${escaped(metric.description, isOpenMetrics)}\n`
  text += `# TYPE ${shown} ${type}\n`
  const unit = unitName(metric.unit)
  return isOpenMetrics && unit !== '' && name.endsWith(`_${unit}`) ? `${text}# UNIT ${name} ${unit}\n` : text
}

function seriesText ({ name, type }, metric, series, isOpenMetrics, ends, now) {
  const { labels, value, exemplars } = series
  const braced = labels === '' ? '' : `{${labels}}`
  // An observable counter started counting at an unknown time before its first callback; a gauge has no start.
  const isBegun = isOpenMetrics && type !== 'gauge' && !metric.isObservable
  // Without `_created`, no rate includes what was counted before the first scrape.
  const created = isBegun ? `${name}_created${braced} ${timeText(startOf(series, now))}\n` : ''
  if (type === 'histogram') return histogramLines(name, braced, series, isOpenMetrics, ends) + created
  const exemplar = isOpenMetrics && type === 'counter' && exemplars !== null ? exemplarText(exemplars[0]) : ''
  return `${name}${type === 'counter' ? '_total' : ''}${braced} ${numberText(value)}${exemplar}\n${created}`
}

function histogramLines (name, braced, series, isOpenMetrics, texts) {
  const { bounds, counts, exemplars } = texts !== null ? series : shownBuckets(series)
  const ends = texts ?? boundTexts(bounds, isOpenMetrics)
  const begin = `${name}_bucket{${series.labels === '' ? '' : `${series.labels},`}`
  let text = ''
  let total = 0
  for (let i = 0; i < bounds.length; i++) {
    total += counts[i]
    if (bounds[i] < 0) continue // values are never negative, and OpenMetrics forbids a sum if a bound is
    const exemplar = isOpenMetrics && exemplars !== null ? exemplarText(exemplars[i]) : ''
    text += `${begin}${ends[i]}${total}${exemplar}\n`
  }
  return `${text}${name}_sum${braced} ${numberText(series.sum)}\n${name}_count${braced} ${total}\n`
}

/**
 * Converts an exponential histogram to explicit bounds. Neighbouring buckets are merged until the scale is at most 1: the bounds of
 * a coarser scale are also bounds of the finer ones. At both ends of a double's range, several buckets get the same bound and are merged.
 */
function shownBuckets (series) {
  const scale = Math.min(series.scale, SCALE_SHOWN_MAX)
  const { offset, counts } = mergeBuckets(series.buckets(), series.scale - scale)
  const kept = series.exemplars === null ? [] : series.exemplars.filter((exemplar) => exemplar !== null)
  const shown = { bounds: [], counts: [], exemplars: [] }
  const add = (bound, count) => {
    const below = shown.bounds.at(-1) ?? 0 // the first bucket starts at zero
    if (below === bound && shown.bounds.length > 0) {
      shown.counts[shown.counts.length - 1] += count
      return
    }
    shown.bounds.push(bound)
    shown.counts.push(count)
    shown.exemplars.push(kept.find(({ value }) => value > below && value <= bound) ?? null)
  }
  if (series.zeroCount !== 0) add(0, series.zeroCount)
  counts.forEach((count, index) => add(2 ** ((offset + index + 1) / 2 ** scale), count))
  add(Infinity, 0)
  return shown
}

function exemplarText (exemplar) {
  if (exemplar === null) return ''
  const { value, timeMs, traceId, spanId } = exemplar
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${numberText(value)} ${timeText(clock.nanosOf(timeMs))}`
}

/** Seconds with three decimals. */
function timeText (nanos) {
  return `${nanos / 1000000000n}.${String(nanos / 1000000n % 1000n).padStart(3, '0')}`
}

function targetInfo (resource, isOpenMetrics) {
  const [name, type] = isOpenMetrics ? ['target', 'info'] : ['target_info', 'gauge']
  return `# HELP ${name} Target metadata\n# TYPE ${name} ${type}\ntarget_info{${labelsOf(Object.entries(resource).flat())}} 1\n`
}

function scopeLabelsOf ({ name, version = '' }) {
  const labels = [['otel_scope_name', name], ['otel_scope_version', version]]
  return labels.filter(([, value]) => value !== '').map(([label, value]) => labelText(label, value)).join()
}

/** The content type that an Accept header asks for. */
function negotiate (accept) {
  if (typeof accept !== 'string') return TEXT
  const plain = quality(accept, /^text\/plain\b|^\*\/\*|^text\/\*/)
  return quality(accept, /^application\/openmetrics-text\b/) > plain ? OPEN_METRICS : TEXT
}

/** The highest `q` value of a type. OpenMetrics versions that we do not support are ignored. */
function quality (accept, type) {
  let best = 0
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...parameters] = range.split(';').map((part) => part.trim())
    const { version = '1.0.0', q = 1 } = Object.fromEntries(parameters.map((parameter) => parameter.split('=')))
    const isSpoken = !name.startsWith('application/') || version === '1.0.0' || version === '0.0.1'
    if (isSpoken && type.test(name) && Number(q) > best) best = Number(q)
  }
  return best
}

// OTEL_METRICS_EXPORTER=prometheus: a separate server that answers only /metrics.

const RETRY_MS = 1000 // the process that uses the port may be about to exit

/** Returns the function that closes the server. */
function startPrometheusServer ({ host, port }, metrics, report) {
  const server = createServer((request, response) => {
    const [path] = request.url.split('?')
    if (path !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) return response.writeHead(404).end()
    metrics.scrape(request.headers.accept).then(({ type, body }) => {
      response.writeHead(200, { 'content-type': type })
      pipeline(body, response, () => {}) // a scraper that disconnects is not an error
    }, () => response.writeHead(500).end())
  })
  let timer = null
  // Exclusive: otherwise the workers of a cluster share the port, and each scrape reaches a different worker.
  const listen = () => server.listen({ port, host, exclusive: true })
  server.on('error', (error) => {
    const why = cluster.isWorker ? 'each cluster worker has its own metrics and needs its own port' : 'light-trace retries'
    report.warn('LT_WARN_METRICS_PORT', `metrics are not served on ${host}:${port}: ${error.message}; ${why}: OTEL_EXPORTER_PROMETHEUS_PORT`)
    timer = clock.setTimeout(listen, RETRY_MS).unref()
  })
  listen()
  server.unref() // it does not keep the process alive
  return () => {
    clock.clearTimeout(timer)
    server.close()
    server.closeAllConnections()
  }
}

module.exports = { exposition, negotiate, TEXT, OPEN_METRICS, startPrometheusServer }
