// Compares two requests: which spans took longer, and which are only in one of them.

import { get, tracePath } from './api.mjs'
import { h, iconButton } from './dom.mjs'
import { within } from './numbers.mjs'
import { requestName, statusBadge } from './request-line.mjs'
import { clock, count, duration, line } from './text.mjs'
import { gridCell, gridHead, indent, virtualRows } from './virtual.mjs'

export function compareView ({ app, host, params }) {
  const [a, b] = [params.get('a') ?? '', params.get('b') ?? '']
  const head = h('div.view-head')
  const grid = h('div.grid.compare', { role: 'treegrid', tabindex: '0', 'aria-label': 'Spans of both requests', 'aria-colcount': '4' },
    gridHead([['Span', 'name'], ['A', 'num'], ['B', 'num'], ['A minus B', 'change']]))
  let rows = []
  let most = 1
  let selected = 0
  const list = virtualRows(grid, render)
  app.title('Compare')
  host.append(head, grid)
  load()
  return { follow: {}, close: list.close, focus: () => grid.focus(), key }

  async function load () {
    try {
      const data = await get('/api/compare', { a, b })
      rows = data.rows
      most = Math.max(0.001, ...rows.map(({ aMs, bMs }) => Math.abs(aMs - bMs)))
      head.replaceChildren(
        h('div.title', iconButton('back', 'Back to the request', () => app.go(tracePath(data.a.id))), h('h1', b === '' ? 'Compared with the median request of its route' : 'Two requests compared')),
        side('A', data.a), side('B', data.b))
      list.update(rows.length)
      grid.focus({ preventScroll: true })
      select(0)
    } catch (error) {
      grid.hidden = true
      head.replaceChildren(h('div.nothing', h('h1', 'Nothing to compare with'), h('p', error.message), a === '' ? '' : h('a', { href: tracePath(a) }, 'Back to the request')))
    }
  }

  function side (letter, trace) {
    return h('a.side', { href: tracePath(trace.id) },
      h('b.letter', letter), statusBadge(trace), ...requestName(trace), h('span.num', duration(trace.durationMs)), h('span.quiet.num', clock(trace.startMs)))
  }

  function render (index) {
    const row = rows[index]
    const change = row.aMs - row.bMs
    const only = row.aCount === 0 ? 'only in B' : row.bCount === 0 ? 'only in A' : ''
    const width = Math.abs(change) / most * 50
    return h('div', { class: `row ${only === '' ? '' : 'only'}`, 'aria-level': row.depth + 1, 'aria-selected': index === selected, onclick: () => select(index) },
      gridCell('name', { ...indent(row), title: line(row.name) }, h('bdi.label', line(row.name) || 'no name'), only !== '' && h('span.flag', only)),
      figure(row.aMs, row.aCount, row.aErrors), figure(row.bMs, row.bCount, row.bErrors),
      gridCell('change',
        h('span', { class: `delta ${change > 0 ? 'slower' : 'faster'}`, style: { left: `${change > 0 ? 50 : 50 - width}%`, width: `${width}%` } }),
        h('span.number', Math.abs(change) < 0.0005 ? '' : `${change > 0 ? '+' : ''}${duration(change)}`)))
  }

  function figure (ms, times, errors) {
    return gridCell(errors > 0 ? 'num.bad' : 'num', times === 0 ? '–' : duration(ms), times > 1 && h('span.quiet', ` ×${count(times)}`))
  }

  function select (index) {
    if (rows[index] === undefined) return
    const before = selected
    selected = index
    list.select(before, index)
  }

  function key (event) {
    if (event.key === 'Escape') {
      app.go(tracePath(a))
      return true
    }
    const move = list.move(event)
    if (move === undefined) return false
    select(within(0, selected + move, rows.length - 1))
    return true
  }
}
