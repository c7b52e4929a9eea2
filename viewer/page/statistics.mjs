// The statistics of one trace: its time by the name of its spans or by service, as a table beside the waterfall.

import { get, query, tracePath } from './api.mjs'
import { afterPaint, bdi, h, linkButton, redrawn, scrolling } from './dom.mjs'
import { choice, press } from './fields.mjs'
import { isText, sortableTable } from './sortable.mjs'
import { count, duration, percent, plural } from './text.mjs'

const NUMBERS = [
  ['Calls', 'calls'], ['Own time', 'ownMs', 'Time in these spans themselves, without their children'], ['Total', 'totalMs', 'Time from start to end, added up'],
  ['Average', 'avgMs'], ['Min', 'minMs'], ['Max', 'maxMs'], ['Failed', 'errors']
]
const TEXTS = { name: ['Span', 'name'], service: ['Service', 'name'] }
const KEYS = ['name', 'service', ...NUMBERS.map(([, key]) => key)]

/**
 * @param {{ app, params: URLSearchParams, tools: HTMLElement, body: HTMLElement, find: HTMLInputElement, opened: () => void, closed: () => void }} of
 *   `tools`, `body`: what they show of the waterfall is hidden while the statistics are shown; `find`: the field that finds spans in the waterfall
 */
export function statistics ({ app, params, tools, body, find, opened, closed }) {
  let shown = params.get('view') === 'statistics'
  let by = params.get('by') === 'service' ? 'service' : 'name'
  const order = { by: KEYS.includes(params.get('sort')) ? params.get('sort') : 'ownMs' }
  order.down = params.get('order') ? params.get('order') !== 'asc' : !isText(order.by)
  let id
  let data
  let generation = 0
  const region = scrolling('Statistics')
  region.classList.add('statistics')
  const views = choice('View', { waterfall: 'Waterfall', statistics: 'Statistics' }, (key) => open(key === 'statistics'))
  const groups = choice('Group', { name: 'By name', service: 'By service' }, (key) => {
    by = key
    if (by === 'service' && order.by === 'service') order.by = 'ownMs'
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
    const isDefault = order.by === 'ownMs' && order.down
    app.rename(location.pathname + (shown ? query({ view: 'statistics', by: by === 'service' ? by : '', ...!isDefault && { sort: order.by, order: order.down ? 'desc' : 'asc' } }) : ''))
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
      const answer = await get(`/api${tracePath(id)}/statistics`, { by })
      if (mine !== generation) return
      data = answer
      draw()
    } catch (error) {
      if (mine === generation) region.replaceChildren(h('p.nothing', error.message))
    }
  }

  function draw () {
    redrawn(region, () => region.replaceChildren(tableOf(), data.more > 0 ? h('p.remark', `${plural(data.more, 'more row')} with less own time not shown.`) : ''))
  }

  function tableOf () {
    const isNamed = data.by === 'name' && new Set(data.rows.map(({ service }) => service)).size > 1
    const columns = [TEXTS[data.by], ...isNamed ? [TEXTS.service.with(1, 'service')] : [], ...data.by === 'service' ? NUMBERS.with(0, ['Spans', 'calls']) : NUMBERS]
    return sortableTable({ classes: '', caption: `Time by ${data.by}`, columns, rows: data.rows, order, changed: () => { changed(); draw() } }, (row) => h('tr', { onclick: () => findSpans(row) }, cellsOf(row, isNamed)))
  }

  function cellsOf (row, isNamed) {
    const time = (key) => h('td', { class: `num k-${key}` }, duration(row[key]))
    return [
      h('th', { scope: 'row', class: 'k-name' },
        linkButton(bdi(row.name || 'no name'), undefined, { title: 'Find in the waterfall', 'data-key': `row ${row.kind} ${row.service} ${row.name}` }),
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
