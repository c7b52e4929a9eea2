// One chart of the Metrics page: an instrument, or several of one unit. It is loaded while it is in view.

import { MS_IN } from '../otlp/units.js'
import { get, query, tracePath } from './api.mjs'
import { chart } from './chart.mjs'
import { bdi, h } from './dom.mjs'
import { sum } from './numbers.mjs'
import { whenReleased } from './pointer.mjs'
import { line, number, percent, plural, quantity } from './text.mjs'

export const PERCENTILES = ['p50', 'p95', 'p99']
const LABELS = { mean: 'Mean', max: 'Highest', rate: 'Per second', value: 'Value' }

/**
 * @param {{ title: string, names: string[], of: object, unit, more?: Node[], choice: () => { by, show, service, from, to, last }, shows?: (statistic: string) => void }} description
 *   of: what else tells the metrics apart from others of their names; more: what else the card shows above its chart; choice: returns what to show now; shows: the statistic that is drawn
 * @param {{ times, shared }} page
 * @returns {{ element, load, close }}
 */
export function metricCard ({ title, names, of, unit, more = [], choice, shows }, { times, shared }) {
  const figure = chart({ ...shared, label: line(title, 80), caption: h('h3', bdi(title, 120)) })
  const note = h('p.remark')
  const element = h('section.card', figure.element, note)
  figure.element.firstChild.after(...more)
  let closed = false
  return { element, load, close: () => { closed = true; figure.close() } }

  async function load () {
    const { by, show, ...where } = choice()
    try {
      const answers = await Promise.all(names.map((name) => get(`/api/metrics/data?${new URLSearchParams({ name, ...of })}${query({ ...where, by }).replace('?', '&')}`))) // a scope or unit may be empty
      whenReleased(() => !closed && draw(answers, show, by ? by.split(',') : []))
    } catch ({ status, message }) {
      note.textContent = status === 404 ? 'The viewer no longer has this.' : message
    }
  }

  function draw (answers, wanted, keys) {
    const all = answers.flatMap(({ series }, nth) => series.map((each) => ({ ...each, name: names.length > 1 && lastParts(names)[nth] })))
    const has = (key) => all[0]?.[key] !== undefined
    const shown = has(wanted) ? wanted : !has('p50') ? has('rate') ? 'rate' : 'value' : wanted === 'percentiles' || all.length < 2 ? 'percentiles' : 'p95'
    const several = new Set(all.map(({ service }) => service)).size > 1
    const lines = all.flatMap((each) => {
      const label = [each.name, ...keys.map((key) => line(each.attributes[key] ?? '–', 60) || '""'), several && (line(each.service, 40) || 'no service')].filter(Boolean).join(' · ')
      return shown === 'percentiles' ? PERCENTILES.map((key) => ({ label: `${label} ${key}`.trim(), values: each[key] })) : [{ label: label || LABELS[shown] || shown, values: each[shown] }]
    })
    shows?.(shown)
    const dots = shown === 'rate' ? [] : all.flatMap(({ exemplars }) => dotsOf(exemplars))
    figure.set({ ...times(answers[0], lines), lines, dots, format: formatOf(shown, answers[0].kind, unit) })
    const total = sum(all.map(({ total }) => total))
    const left = sum(answers.map(({ more }) => more))
    note.textContent = all.length === 0 ? 'Nothing in this time.' : left > 0 ? `${plural(left, 'more line is', 'more lines are')} not shown.` : names.length === 1 && has('total') ? `${has('p50') ? plural(total, 'value') : quantity(total, unit)} in this time.` : ''
  }
}

/** Exemplars as the dots of a chart. */
export function dotsOf (exemplars) {
  return exemplars.map(({ traceId, spanId, held, ...dot }) => ({ ...dot, label: traceId, href: held ? tracePath(traceId, { span: spanId }) : undefined }))
}

/** The options of a select of what to show of an instrument: value and label. */
export function statistics ({ kind }) {
  return /histogram|summary/.test(kind) ? [['percentiles', 'Percentiles'], ...[...PERCENTILES, 'mean', 'max', 'rate'].map((key) => [key, LABELS[key] ?? key])] : []
}

function formatOf (shown, kind, unit) {
  if (shown !== 'rate') return (value) => quantity(value, unit)
  if (kind !== 'sum') return (value) => `${number(value)}/s`
  // Counters of time, such as CPU time, are shown as a share of the time.
  return unit in MS_IN ? (value) => percent(value * MS_IN[unit] / 1000) : (value) => `${quantity(value, unit)}/s`
}

// nodejs.eventloop.delay.p50 and .p99 are p50 and p99.
function lastParts (names) {
  const parts = names.map((name) => name.split('.'))
  let same = 0
  while (parts.every((each) => each.length > same + 1 && each[same] === parts[0][same])) same++
  return parts.map((each) => line(each.slice(same).join('.'), 60))
}
