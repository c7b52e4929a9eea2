'use strict'

// Formats the answers of /api/metrics and /api/metrics/data as text for a terminal or an assistant.
//
//   http.server.request.duration  histogram  s  2 series  shop  by http.request.method, http.route
//
//   http.request.method=GET http.route=/users/:id  shop
//     1.2/s  1080 in all  p50 2.1 ms  p95 8.4 ms  p99 14.0 ms  mean 3.0 ms  max 15.2 ms  ▁▁▃█▅▂
//     4bf92f3577b34da6a3ce929d0e0e4736  15.2 ms

const { metricKindOf } = require('../otlp/names')
const { MS_IN } = require('../otlp/units')
const { rateText } = require('./rate')
const { safeText } = require('./safe-text')
const { duration } = require('./text')

const LINE_POINTS = 40
const BLOCKS = '▁▂▃▄▅▆▇█'
const EXEMPLARS = 3
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** @param {object} answer of /api/metrics */
function metricsText ({ instruments, dropped }, service) {
  const shown = instruments.filter(({ services }) => service === undefined || services.includes(service))
  const lost = Object.entries(dropped).filter(([, count]) => count > 0).map(([reason, count]) => `${count} ${reason.replaceAll('_', ' ')}`)
  const width = Math.min(60, shown.reduce((widest, { name }) => Math.max(widest, name.length), 0))
  return [
    ...shown.length === 0 ? ['No metric has been received in the last hour.'] : shown.map((each) => instrumentLine(each, width)),
    ...lost.length === 0 ? [] : ['', `dropped: ${lost.join(', ')}`]
  ].join('\n')
}

function instrumentLine (instrument, width) {
  const { name, unit, series, services, attributes } = instrument
  const keys = Object.keys(attributes).sort()
  return [
    safeText(name).padEnd(width),
    metricKindOf(instrument).padEnd(9),
    safeText(unit) || '1',
    `${series} series`,
    services.map((each) => safeText(each) || 'unknown service').join(', '),
    ...keys.length === 0 ? [] : [`by ${keys.slice(0, 10).map((key) => safeText(key, 80)).join(', ')}`]
  ].join('  ')
}

/** @param {object} answer of /api/metrics/data @param {object} list of /api/metrics, for other kinds of this name */
function metricText (answer, { instruments }) {
  const { name, unit, description, series, more } = answer
  const kind = metricKindOf(answer)
  const others = new Set(instruments.filter((each) => each.name === name).map(metricKindOf))
  others.delete(kind)
  return [
    `${safeText(name)}  ${kind}  ${safeText(unit) || '1'}${description === '' ? '' : `  ${safeText(description)}`}`,
    ...[...others].map((other) => `There is also a ${other} of this name: set kind to ${other}.`),
    ...series.length === 0 ? ['', 'Nothing was measured in this time.'] : series.flatMap((each) => ['', ...seriesLines(each, unit)]),
    ...more === 0 ? [] : ['', `… ${more} more series: name fewer attributes`]
  ].join('\n')
}

function seriesLines ({ attributes, service, value, rate, total, p50, p95, p99, mean, max, exemplars }, unit) {
  const labels = Object.entries(attributes).map(([key, text]) => `${safeText(key, 80)}=${safeText(text, 100)}`).join(' ')
  const isCounted = p50 !== undefined
  const figures = value === undefined
    ? [ratesText(rate), `${isCounted ? number(total) : amount(total, unit)} in all`, ...Object.entries({ p50, p95, p99, mean, max }).filter(([, list]) => latest(list) !== undefined).map(([name, list]) => `${name} ${amount(latest(list), unit)}`)]
    : [latest(value) === undefined ? 'no value' : amount(latest(value), unit)]
  return [
    [labels, safeText(service) || 'unknown service'].filter(Boolean).join('  '),
    `  ${figures.join('  ')}  ${line(value ?? rate)}`.trimEnd(),
    ...exemplars.filter(({ held }) => held).slice(0, EXEMPLARS).map((each) => `  ${each.traceId}  ${amount(each.value, unit)}`)
  ]
}

/** The newest rate, and the highest if it is another: what happens rarely has a newest rate of 0. */
function ratesText (rates) {
  const [newest, highest] = [latest(rates) ?? 0, Math.max(0, ...rates)].map(rateText)
  return newest === highest ? newest : `${newest} (at most ${highest})`
}

function latest (values) {
  return values?.findLast((each) => each !== null)
}

/** The newest values as blocks, with gaps where there are none. */
function line (values) {
  const shown = values.slice(-LINE_POINTS)
  const known = shown.filter((each) => each !== null)
  if (known.length < 2) return ''
  const [least, most] = [Math.min(0, ...known), Math.max(...known)]
  if (most === least) return ''
  return shown.map((each) => each === null ? ' ' : BLOCKS[Math.min(BLOCKS.length - 1, Math.floor((each - least) / (most - least) * BLOCKS.length))]).join('').trim()
}

function amount (value, unit) {
  if (MS_IN[unit] !== undefined) return duration(value * MS_IN[unit])
  if (unit === 'By') return byteText(value)
  const text = safeText(unit.replace(/^\{(.*)\}$/, '$1'), 40)
  return text === '' || text === '1' ? number(value) : `${number(value)} ${text}`
}

function byteText (value) {
  const power = Math.min(BYTE_UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.abs(value) || 1) / 3)))
  return `${number(value / 1000 ** power)} ${BYTE_UNITS[power]}`
}

function number (value) {
  return String(Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4)))
}

/** The attributes by which a metric's series are told apart, for `by`. */
function separatingKeys ({ instruments }, name, kind) {
  const keys = new Set(instruments.filter((each) => each.name === name && (kind === undefined || metricKindOf(each) === kind)).flatMap(({ attributes }) => Object.keys(attributes)))
  return [...keys].filter((key) => !key.includes(',')).sort().slice(0, 10)
}

module.exports = { metricsText, metricText, separatingKeys }
