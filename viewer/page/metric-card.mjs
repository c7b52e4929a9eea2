// One chart of the Metrics page: an instrument, or several of one unit. It is loaded while it is in view.

import { get } from './api.mjs'
import { chart } from './chart.mjs'
import { h } from './dom.mjs'
import { line, number, percent, plural, quantity } from './text.mjs'

export const GROUP = 'metrics' // the charts whose cursors move together
const PERCENTILES = ['p50', 'p95', 'p99']
const TIMES = ['ns', 'us', 'ms', 's'] // counters of time, such as CPU time, are shown as a share of the time
const SECONDS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 }
const NAMES = { percentiles: 'p50, p95, p99', mean: 'Mean', max: 'Highest', rate: 'Per second', value: 'Last value' }

/**
 * @param {{ title, names: string[], scope?, unit, service?, more? }} of `more`: what else the head of the card shows
 * @param {{ app, onSelect, choice: () => { by, show, service, from, to, last } }} page `choice` returns what is to be shown now
 * @returns {{ element, load, close, shows: (available: string[]) => void }}
 */
export function metricCard ({ title, names, scope, unit, service, more }, { app, onSelect, choice, offers }) {
  const caption = h('span')
  const figure = chart({ label: line(title, 80), caption, group: GROUP, onSelect, open: ({ href }) => app.go(href) })
  const note = h('p.remark', { hidden: true })
  const element = h('section.card', { 'aria-label': line(title, 80) }, h('h3', null, h('bdi', null, line(title, 120))), more, figure.element, note)
  let closed = false
  return { element, load, close: () => { closed = true; figure.close() } }

  async function load () {
    const { by, show, ...where } = choice()
    try {
      const answers = await Promise.all(names.map((name) => get('/api/metrics/data', { service, ...where, scope, name, by })))
      if (!closed) draw(answers, show, by === '' || by === undefined ? [] : by.split(','))
    } catch (error) {
      if (closed) return
      remark(error.status === 404 ? 'The viewer no longer has this.' : error.message)
    }
  }

  function draw (answers, wanted, keys) {
    const available = statisticsOf(answers)
    const single = answers.length === 1 && answers[0].series.length <= 1
    const shown = available.includes(wanted) ? wanted : available[0] === 'percentiles' && !single ? 'p95' : available[0]
    offers?.(available, shown)
    caption.textContent = NAMES[shown] ?? shown ?? ''
    const timed = answers.find(({ atMs }) => atMs.length > 0) ?? { atMs: [], slotMs: 0 }
    const labels = distinct(names)
    const several = new Set(answers.flatMap(({ series }) => series.map((each) => each.service))).size > 1
    const lines = answers.flatMap(({ series }, nth) => series.flatMap((each) => {
      const label = [names.length > 1 && labels[nth], ...keys.map((key) => line(each.attributes[key] ?? '–', 60) || '""'), several && (line(each.service, 40) || 'no service')].filter(Boolean).join(' · ')
      const statistics = shown === 'percentiles' ? PERCENTILES : [shown]
      return statistics.map((key) => ({ label: (shown === 'percentiles' ? [label, key].filter(Boolean).join(' ') : label) || NAMES[key] || key, values: each[key] ?? [] }))
    }))
    const dots = shown === 'rate' ? [] : answers.flatMap(({ series }) => series.flatMap(({ exemplars }) => dotsOf(exemplars)))
    figure.set({ ...timesOf(timed), lines, dots, format: formatOf(shown, answers[0], unit) })
    const left = answers.reduce((sum, each) => sum + each.more, 0)
    remark(timed.atMs.length === 0 || lines.length === 0 ? 'Nothing in this time.' : left > 0 ? `${plural(left, 'more series is', 'more series are')} not shown.` : '')
  }

  function remark (text) {
    note.textContent = text
    note.hidden = text === ''
  }
}

/** The interval of a chart of these slots. */
export function timesOf ({ atMs, slotMs = 0 }) {
  const step = slotMs || (atMs[1] ?? 0) - (atMs[0] ?? 0)
  return { atMs, fromMs: atMs[0] ?? 0, toMs: (atMs.at(-1) ?? 0) + Math.max(1, step) }
}

/** Exemplars as the dots of a chart. */
export function dotsOf (exemplars = [], factor = 1) {
  return exemplars.map(({ atMs, value, traceId, spanId, held }) => ({
    atMs,
    value: value * factor,
    label: traceId,
    href: held ? `/traces/${encodeURIComponent(traceId)}${spanId ? `?span=${encodeURIComponent(spanId)}` : ''}` : undefined
  }))
}

function statisticsOf (answers) {
  const first = answers.find(({ series }) => series.length > 0)?.series[0] ?? {}
  const has = (key) => Array.isArray(first[key])
  return [...(has('p50') ? ['percentiles', ...PERCENTILES] : []), ...['value', 'mean', 'max', 'rate'].filter(has)]
}

function formatOf (shown, { kind }, unit) {
  if (shown !== 'rate') return (value) => quantity(value, unit)
  if (/histogram/.test(kind)) return (value) => `${number(value)}/s`
  return TIMES.includes(unit) ? (value) => percent(value * SECONDS[unit]) : (value) => `${quantity(value, unit)}/s`
}

// nodejs.eventloop.delay.p50 and .p99 are p50 and p99.
function distinct (names) {
  const parts = names.map((name) => name.split('.'))
  let same = 0
  while (parts.every((each) => each.length > same + 1 && each[same] === parts[0][same])) same++
  return parts.map((each) => line(each.slice(same).join('.'), 60))
}
