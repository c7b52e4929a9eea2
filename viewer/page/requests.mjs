// Shows requests as they arrive, with failed requests first. The server filters them. The page keeps the newest ones and sorts them.

import { get, query, tracePath } from './api.mjs'
import { afterPaint, button, h, problem, say } from './dom.mjs'
import { choice, pauseButton, press } from './fields.mjs'
import { filterBar, filterOf, filterParams } from './filter.mjs'
import { onNews } from './live.mjs'
import { sum, within } from './numbers.mjs'
import { overview } from './overview.mjs'
import { whenReleased } from './pointer.mjs'
import { requestCells } from './request-line.mjs'
import { count, duration, line, plural } from './text.mjs'
import { gridHead, virtualRows } from './virtual.mjs'

const LOAD = 500
const FAILED_LOAD = 100
const RELOAD_MS = 1500
const KEEP_MAX = 5000
const FAILED_FIRST = 5 // more would hide new requests
const COLUMNS = [['Time', 'time'], ['Status', 'status'], ['Request', 'what'], ['Service', 'service'], ['Duration', 'took'], ['Spans', 'spans'], ['Notes', 'flags']]
const ORDERS = { errors: 'Errors first', newest: 'Newest', slowest: 'Slowest' }

export function requestsView ({ app, host, params }) {
  const filter = filterOf(params)
  const traces = new Map()
  const held = new Map() // traces that came while paused
  let rows = []
  let selected = -1
  let order = params.get('order') in ORDERS ? params.get('order') : 'errors'
  let paused = false
  let missed = false // while paused
  let more = false
  let total = 0
  let generation = 0
  let loaded = false
  let scheduled = false
  let failure // why the list could not be loaded
  let advice = [] // reasons why no requests arrive
  let cursor // order of the oldest trace that was loaded without gaps; older traces were not requested

  const news = onNews(renew)
  const wanted = () => ({ ...filterParams(filter), ...app.interval })
  const bar = filterBar(filter, changed)
  const chart = overview({ app, params: wanted, loaded: ({ fromMs }) => app.interval.last && leave(fromMs) })
  const orders = choice('Order', ORDERS, (key) => { order = key; changed() })
  const found = h('span.quiet')
  const exporter = h('a.button', { download: 'traces.jsonl' }, 'Export')
  const pauser = pauseButton(pause)
  const grid = h('div.grid.requests', { role: 'grid', tabindex: '0', 'aria-label': 'Requests', 'aria-colcount': '7', onkeydown: onKey }, gridHead(COLUMNS))
  const note = h('div.note')
  app.title('')
  host.append(h('h1.sr', 'Requests'), bar.element, chart.element, h('div.tools', orders, found, h('span.gap'), exporter, pauser.element), grid, note)
  const list = virtualRows(grid, render)
  load()

  const view = {
    follow: wanted(),
    search: bar.focus,
    focus: () => grid.focus(),
    close () {
      list.close()
      chart.close()
    },
    live (event, data) {
      advice = (data.stats ?? data).advice ?? advice
      if (traces.size === 0) drawNote()
      if (event !== 'traces') return news(event)
      total = data.total
      chart.soon()
      for (const trace of data.traces) (paused ? held : traces).set(trace.id, { ...trace, generation })
      for (const kept of [traces, held]) forget(kept, data.oldest)
      if (data.more > 0) reloadSoon()
      schedule()
    },
    key (event) {
      if (event.key === 'e') return step((row) => row.trace?.state === 'error', 1)
      if (event.key === 'E') return step((row) => row.trace?.state === 'error', -1)
      if (event.key === 'p') return pause()
      if (event.key === 'Escape') return clearFilter()
      if (document.activeElement !== grid && /^Arrow(?:Up|Down)$/.test(event.key)) {
        grid.focus()
        return onKey(event)
      }
    }
  }
  return view

  // A paused list stays as it is.
  function renew () {
    if (paused) missed = true
    else load()
  }

  async function load () {
    const mine = ++generation
    missed = false
    held.clear()
    try {
      const [newest, failed] = await Promise.all([
        get('/api/traces', { ...wanted(), limit: LOAD, sort: order === 'slowest' ? order : undefined }),
        filter.status === '' && order !== 'slowest' ? get('/api/traces', { ...wanted(), status: 'error', limit: FAILED_LOAD }) : { traces: [] }
      ])
      if (mine !== generation) return
      const arrived = [...traces.values()].filter((trace) => trace.generation === mine) // the answers may be older
      traces.clear()
      for (const trace of [...failed.traces, ...newest.traces, ...arrived]) traces.set(trace.id, trace)
      more = newest.more
      cursor = cursorOf(newest)
      total = newest.total
      loaded = true
      failure = undefined
      draw()
      if (selected < 0) showOpened()
      afterPaint(chart.load)
    } catch (error) {
      if (mine !== generation) return
      failure = error.message
      drawNote()
    }
  }

  // After a return from a trace, its row is selected.
  function showOpened () {
    const index = rows.findIndex(({ trace }) => trace !== undefined && trace.id === app.opened)
    app.opened = undefined
    if (index < 0) return
    select(index, 1)
    grid.focus({ preventScroll: true })
  }

  function reloadSoon () {
    reloadSoon.timer ??= setTimeout(() => {
      reloadSoon.timer = undefined
      renew()
    }, RELOAD_MS)
  }

  async function loadOlder () {
    const mine = generation
    const answer = await get('/api/traces', { ...wanted(), limit: LOAD, before: cursor })
    if (mine !== generation) return // the list is another one
    for (const trace of answer.traces) traces.set(trace.id, trace)
    cursor = cursorOf(answer) ?? cursor
    more = answer.more
    draw()
  }

  function changed () {
    const path = '/' + query({ ...filterParams(filter), order: order === 'errors' ? undefined : order })
    app.rename(path)
    view.follow = wanted()
    app.follow(view.follow)
    load()
  }

  function clearFilter () {
    if (!bar.clear()) return
    changed()
    return true
  }

  function pause () {
    paused = !paused
    for (const [id, trace] of held) traces.set(id, trace)
    held.clear()
    say(paused ? 'Paused' : 'Live')
    draw()
    if (missed) load()
    return true
  }

  function schedule () {
    if (scheduled) return
    scheduled = true
    requestAnimationFrame(() => whenReleased(() => {
      scheduled = false
      draw()
    }))
  }

  function draw () {
    const chosen = rows[selected]?.trace?.id
    trim()
    rows = rowsOf([...traces.values()], order)
    selected = chosen === undefined ? -1 : rows.findIndex((row) => row.trace?.id === chosen)
    list.update(rows.length)
    list.point(selected)
    drawTools()
    drawNote()
  }

  // With `last`, requests leave the list when they are older.
  function leave (fromMs) {
    const before = traces.size
    for (const [id, { startMs }] of traces) if (startMs < fromMs) traces.delete(id)
    if (traces.size < before) schedule()
  }

  function trim () {
    if (traces.size <= KEEP_MAX) return
    more = true
    if (order === 'slowest') {
      for (const { id } of [...traces.values()].sort(bySlowness).slice(KEEP_MAX)) traces.delete(id)
      return
    }
    const orders = [...traces.values()].map(({ order }) => order).sort((a, b) => b - a)
    cursor = orders[KEEP_MAX - 1]
    forget(traces, cursor)
  }

  function drawTools () {
    const failed = sum(rows.map(({ trace }) => Number(trace?.state === 'error')))
    press(orders, Object.keys(ORDERS).indexOf(order))
    found.replaceChildren(plural(traces.size, 'request') + (more ? ' loaded' : ''), ...failed > 0 ? [', ', h('b.bad', `${count(failed)} failed`)] : [])
    exporter.href = '/api/export' + query(wanted())
    pauser.draw(paused, held.size)
  }

  function drawNote () {
    note.replaceChildren()
    if (failure !== undefined) return note.append(problem(failure))
    if (!loaded) return
    if (traces.size === 0) note.append(total > 0 || bar.active() ? nothingFound() : welcome(advice))
    if (more && order !== 'slowest') note.append(button('Load older requests', loadOlder))
    grid.classList.toggle('empty', traces.size === 0)
  }

  function nothingFound () {
    return h('div.nothing', h('p', `No match in ${more ? 'the newest requests yet' : plural(total, 'request')}.`), bar.active() && button('Clear the filter', clearFilter), app.isNarrowed && button('Show all time', () => app.narrow({})))
  }

  function render (index) {
    const { trace, group, size, stopped } = rows[index]
    if (group !== undefined) {
      return h('div', { class: `row group ${group === 'Last failed' ? 'bad' : ''}` },
        h('div', { role: 'gridcell', 'aria-colspan': '7' }, h('bdi', group), h('span.quiet', ` ${count(size)}`)))
    }
    return h('div', { class: `row ${trace.state === 'error' ? 'failed' : ''} ${stopped ? 'stopped' : ''}`, 'aria-selected': index === selected, onclick: (event) => open(event, index) }, requestCells(trace))
  }

  function onKey (event) {
    const move = list.move(event)
    if (move !== undefined) {
      event.preventDefault()
      return select(selected + move, Math.sign(move))
    }
    if (event.key === 'Enter' && rows[selected]?.trace) {
      event.preventDefault()
      openTrace(selected)
    }
  }

  function select (wanted, direction) {
    const first = rows.findIndex(({ trace }) => trace !== undefined)
    let index = within(0, wanted, rows.length - 1)
    while (rows[index]?.group !== undefined) index += direction
    if (index < 0) index = first
    if (rows[index] === undefined) return true
    const before = selected
    selected = index
    if (index === first) list.show(0)
    list.select(before, index)
    return true
  }

  function step (fits, direction) {
    for (let tried = 1; tried <= rows.length; tried++) {
      const index = (selected + direction * tried + rows.length * 2) % rows.length
      if (!fits(rows[index])) continue
      grid.focus({ preventScroll: true })
      return select(index, direction)
    }
    say('No request has failed')
    return true
  }

  // A note in the row is a link to one span of the trace.
  function open ({ target }, index) {
    if (target.closest('a') === null) openTrace(index)
    else app.opened = rows[index].trace.id
  }

  function openTrace (index) {
    app.opened = rows[index].trace.id
    app.go(tracePath(rows[index].trace.id))
  }
}

/** Where older requests follow: also a search that found nothing may have stopped there. */
function cursorOf ({ before, traces }) {
  return before ?? traces.at(-1)?.order
}

function bySlowness (a, b) {
  return b.durationMs - a.durationMs
}

function forget (kept, oldest) {
  for (const [id, { order }] of kept) if (order < oldest) kept.delete(id)
}

function rowsOf (traces, order) {
  if (order === 'slowest') return together(traces.sort(bySlowness))
  traces.sort((a, b) => b.order - a.order)
  const failed = order === 'newest' ? [] : traces.filter(({ state }) => state === 'error').slice(0, FAILED_FIRST)
  if (failed.length === 0) return together(traces)
  return [group('Last failed', failed), group('All others', traces.filter((trace) => !failed.includes(trace)))].flat()
}

function group (name, traces) {
  return traces.length === 0 ? [] : [{ group: name, size: traces.length }, ...together(traces)]
}

// Requests that were open during the same blocked loop form a group at the position of the first of them. The request whose code blocked the
// loop comes first.
function together (traces) {
  const blocks = Map.groupBy(traces, ({ blocked }) => blocked?.id)
  return traces.flatMap((trace) => {
    const stopped = trace.blocked === null ? [] : blocks.get(trace.blocked.id)
    if (stopped.length < 2) return { trace }
    if (stopped[0] !== trace) return []
    const { ms, culprit, place } = trace.blocked
    const sorted = stopped.toSorted((a, b) => (b.id === culprit) - (a.id === culprit))
    return [{ group: `Blocked event loop, ${duration(ms)} ${line(place)}`, size: sorted.length }, ...sorted.map((trace) => ({ trace, stopped: true }))]
  })
}

function welcome (advice) {
  const address = location.origin
  return h('div.nothing.welcome',
    h('h2', 'Waiting for the first request'),
    advice.map((each) => h('p.remark', line(each, 400))),
    h('p', 'Start an app in the viewer:'),
    h('pre', 'npx light-trace app.js'),
    h('p', 'or send OTLP over HTTP to this address:'),
    h('pre', `OTEL_EXPORTER_OTLP_ENDPOINT=${address}`))
}
