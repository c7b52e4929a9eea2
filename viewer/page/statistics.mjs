// The statistics of one trace: its time by the name of its spans or by service, as a table beside the waterfall.

import { get, query } from './api.mjs'
import { afterPaint, bdi, button, h, scrolling } from './dom.mjs'
import { count, duration, percent, plural } from './text.mjs'

const NUMBERS = [['Calls', 'calls'], ['Own time', 'ownMs'], ['Total', 'totalMs'], ['Average', 'avgMs'], ['Min', 'minMs'], ['Max', 'maxMs'], ['Failed', 'errors']]
const TITLES = { ownMs: 'Time in these spans themselves, without their children', totalMs: 'Time from start to end, added up' }
const TEXTS = { name: ['Span', 'name'], service: ['Service', 'name'] }
const KEYS = ['name', 'service', ...NUMBERS.map(([, key]) => key)]

/**
 * @param {{ app, params: URLSearchParams, tools: HTMLElement, body: HTMLElement, find: HTMLInputElement, opened: () => void, closed: () => void }} of
 *   `tools`, `body`: what they show of the waterfall is hidden while the statistics are shown; `find`: the field that finds spans in the waterfall
 */
export function statistics ({ app, params, tools, body, find, opened, closed }) {
  let shown = params.get('view') === 'statistics'
  let by = params.get('by') === 'service' ? 'service' : 'name'
  let sort = KEYS.includes(params.get('sort')) ? params.get('sort') : 'ownMs'
  let down = params.get('order') ? params.get('order') !== 'asc' : !isText(sort)
  let id
  let data
  let generation = 0
  const region = scrolling('Statistics')
  region.classList.add('statistics')
  const views = choice('View', { waterfall: 'Waterfall', statistics: 'Statistics' }, (key) => open(key === 'statistics'))
  const groups = choice('Group', { name: 'By name', service: 'By service' }, (key) => {
    by = key
    if (by === 'service' && sort === 'service') sort = 'ownMs'
    changed()
    fetchRows()
  })
  body.append(region)
  mark()

  return {
    tools: [views, groups],
    get shown () { return shown },
    close: () => open(false),
    toggle: () => open(!shown),
    /** The trace is there, or has grown. */
    load (traceId) {
      id = traceId
      data = undefined
      if (shown) fetchRows()
    }
  }

  function open (show) {
    if (shown === show) return true
    if (show) opened()
    shown = show
    changed()
    if (!show) closed()
    else if (data === undefined) fetchRows()
    return true
  }

  function changed () {
    mark()
    const isDefault = sort === 'ownMs' && down
    app.rename(location.pathname + (shown ? query({ view: 'statistics', by: by === 'service' ? by : '', ...!isDefault && { sort, order: down ? 'desc' : 'asc' } }) : ''))
  }

  function mark () {
    for (const element of [tools, body]) element.classList.toggle('as-table', shown)
    groups.hidden = !shown
    press(views, shown ? 1 : 0)
    press(groups, by === 'service' ? 1 : 0)
  }

  async function fetchRows () {
    if (id === undefined) return
    const mine = ++generation
    try {
      const answer = await get(`/api/traces/${encodeURIComponent(id)}/statistics`, { by })
      if (mine !== generation) return
      data = answer
      draw()
    } catch (error) {
      if (mine === generation) region.replaceChildren(h('p.nothing', error.message))
    }
  }

  function draw () {
    const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') : null
    region.replaceChildren(tableOf(), data.more > 0 ? h('p.remark', `${plural(data.more, 'more row')} with less own time not shown.`) : '')
    if (focused !== null) region.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus()
  }

  function tableOf () {
    const isNamed = data.by === 'name' && new Set(data.rows.map(({ service }) => service)).size > 1
    const columns = [TEXTS[data.by], ...isNamed ? [TEXTS.service.with(1, 'service')] : [], ...data.by === 'service' ? NUMBERS.with(0, ['Spans', 'calls']) : NUMBERS]
    const sorted = data.rows.toSorted((a, b) => (down ? -1 : 1) * (isText(sort) ? a[sort].localeCompare(b[sort]) : a[sort] - b[sort]))
    return h('table.wide-table', h('caption.sr', `Time by ${data.by}`),
      h('thead', h('tr', columns.map(([label, key]) =>
        h('th', { scope: 'col', class: `${isText(key) ? '' : 'num'} k-${key}`, title: TITLES[key], 'aria-sort': key === sort ? (down ? 'descending' : 'ascending') : undefined },
          button(label, () => { down = key === sort ? !down : !isText(key); sort = key; changed(); draw() }, { class: 'sort', 'data-key': `sort ${key}` }))))),
      h('tbody', sorted.map((row) => h('tr', { onclick: () => findSpans(row) }, cellsOf(row, isNamed)))))
  }

  function cellsOf (row, isNamed) {
    const time = (key) => h('td', { class: `num k-${key}` }, duration(row[key]))
    return [
      h('th', { scope: 'row', class: 'k-name' },
        button(bdi(row.name || 'no name'), undefined, { class: 'link', title: 'Find in the waterfall', 'data-key': `row ${row.kind} ${row.service} ${row.name}` }),
        row.kind !== null && row.kind !== 'INTERNAL' && h('span.quiet.kind', row.kind.toLowerCase())),
      isNamed && h('td.k-service', bdi(row.service || 'no name', 60)),
      h('td.num.k-calls', count(row.calls)),
      h('td.num.k-ownMs', duration(row.ownMs), h('span.quiet.share', data.ownMs > 0 ? percent(row.ownMs / data.ownMs) : '')),
      ...['totalMs', 'avgMs', 'minMs', 'maxMs'].map(time),
      h('td', { class: `num k-errors ${row.errors > 0 ? 'bad' : ''}` }, row.errors === 0 ? '–' : count(row.errors))
    ]
  }

  // A text field drops line breaks, so the longest line of a name is searched for.
  function findSpans ({ name }) {
    open(false)
    const text = name.split(/[\r\n]+/).reduce((longest, each) => each.length > longest.length ? each : longest)
    afterPaint(() => {
      find.value = text
      find.dispatchEvent(new Event('input'))
    })
  }
}

function isText (key) {
  return key === 'name' || key === 'service'
}

function choice (label, options, chosen) {
  return h('div.choice', { role: 'group', 'aria-label': label }, Object.entries(options).map(([key, text]) => button(text, () => chosen(key))))
}

function press (group, index) {
  for (const [i, each] of [...group.children].entries()) each.setAttribute('aria-pressed', String(i === index))
}
