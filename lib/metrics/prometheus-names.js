'use strict'

// Names, labels and numbers as Prometheus has them.
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/

const UNITS = {
  d: 'days',
  h: 'hours',
  min: 'minutes',
  s: 'seconds',
  ms: 'milliseconds',
  us: 'microseconds',
  ns: 'nanoseconds',
  By: 'bytes',
  KiBy: 'kibibytes',
  MiBy: 'mebibytes',
  GiBy: 'gibibytes',
  TiBy: 'tibibytes',
  KBy: 'kilobytes',
  MBy: 'megabytes',
  GBy: 'gigabytes',
  TBy: 'terabytes',
  m: 'meters',
  V: 'volts',
  A: 'amperes',
  J: 'joules',
  W: 'watts',
  g: 'grams',
  Cel: 'celsius',
  Hz: 'hertz',
  '%': 'percent'
}

const PER = { s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week', mo: 'month', y: 'year' }

/** The unit as a word, '' where there is none. What stands in braces is a comment. */
function unitName (unit) {
  const plain = unit.replace(/\{[^}]*\}/g, '').trim()
  if (plain === '' || plain === '1') return ''
  const slash = plain.indexOf('/')
  if (slash === -1) return UNITS[plain] ?? clean(plain)
  const of = plain.slice(0, slash)
  const per = plain.slice(slash + 1)
  const perName = per === '' ? '' : `per_${PER[per] ?? clean(per)}`
  return [of === '' ? '' : UNITS[of] ?? clean(of), perName].filter((part) => part !== '').join('_')
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

/**
 * A flat list of attributes as labels, without braces. Keys that become the same name share it, with their
 * values joined, as the specification wants it.
 */
function labelsOf (list) {
  const values = new Map()
  for (let i = 0; i < list.length; i += 2) {
    const name = labelName(list[i])
    const value = typeof list[i + 1] === 'string' ? list[i + 1] : JSON.stringify(list[i + 1])
    values.set(name, values.has(name) ? `${values.get(name)};${value}` : value)
  }
  return Array.from(values, ([name, value]) => `${name}="${escapeLabel(value)}"`).join()
}

function labelName (key) {
  const name = key.replace(/[^a-zA-Z0-9_]/g, '_')
  return /^[0-9]/.test(name) ? `key_${name}` : name
}

function escapeLabel (value) {
  return /[\\"\n]/.test(value) ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n') : value
}

/** Of a HELP line; OpenMetrics escapes quotes there too. */
function escapeHelp (text, isOpenMetrics) {
  const escaped = text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
  return isOpenMetrics ? escaped.replace(/"/g, '\\"') : escaped
}

function numberText (value) {
  return value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value)
}

/** A bucket's bound; OpenMetrics wants it to look like a float. */
function boundText (bound, isOpenMetrics) {
  const text = numberText(bound)
  return isOpenMetrics && Number.isInteger(bound) && !text.includes('e') ? `${text}.0` : text
}

module.exports = { unitName, familyName, labelsOf, escapeHelp, numberText, boundText }
