// One trace: its head, its waterfall, and the panel beside it.

import { get, getText, query, tracePath } from './api.mjs'
import { afterPaint, bdi, button, copy, fact, h, iconButton, idButton, isPlain, say } from './dom.mjs'
import { searchInput } from './fields.mjs'
import { levelSelect } from './levels.mjs'
import { remember, remembered } from './memory.mjs'
import { flagsOf, requestName, statusBadge } from './request-line.mjs'
import { spanPanel } from './span.mjs'
import { statistics } from './statistics.mjs'
import { waterfall } from './waterfall.mjs'
import { WAITS, WAIT_MEANINGS, bytes, clock, count, duration, line, plural } from './text.mjs'

const RELOAD_MS = 150
const UNSURE_RELOAD_MS = 1500 // if it is not known whether this trace has changed
const LINES = 'light-trace lines'
const GREETED_MS = 1000 // a delay, so that it does not disturb the first drawing

/** More rows than a screen shows. A large trace is shown before all of it is read. */
const FIRST_ROWS = { limit: 150 }

export function traceView ({ app, host, id, params }) {
  const head = h('header.trace-head')
  const tools = h('div.tools')
  const waits = h('div.legend.waits-legend', { hidden: true })
  const body = h('div.trace-body')
  const panel = h('aside.panel', { 'aria-label': 'Span', tabindex: '-1', hidden: true })
  const fall = waterfall({ opened: openSpan, moved: (row) => !panel.hidden && openSpan(row, { keepFocus: true }), found: showFound })
  const find = searchInput('Find a span or line', { 'aria-label': 'Find a span or a line in this trace', oninput: ({ target }) => fall.find(target.value), onkeydown: findKey })
  const found = h('span.quiet', { role: 'status' })
  const steps = h('span.steps', { hidden: true },
    iconButton('up', 'Previous match (Shift+Enter)', () => fall.nextFound(-1)), iconButton('down', 'Next match (Enter)', () => fall.nextFound(1)))
  const level = levelSelect(remembered(LINES) ?? '', (value) => { remember(LINES, value); fall.leastLevel(value) }, ['none', 'No lines'])
  const figures = statistics({ app, params, tools, body, find: find.input, opened: () => !panel.hidden && closePanel(), closed: () => fall.focus() })
  const wanted = figures.shown ? null : params.get('span') // opened when all rows are here
  let summary
  let more // number of rows that the shown answer left out
  let shown
  let timer
  let later
  let generation = 0
  app.title('Trace')
  tools.append(...figures.tools, find.element, steps, found, level, h('span.gap'),
    legend(), actions())
  level.hidden = true
  fall.leastLevel(level.value)
  body.prepend(fall.element, panel)
  host.append(head, tools, waits, body)
  load()

  return {
    search () {
      figures.close()
      find.focus()
    },
    focus: fall.focus,
    close () {
      generation++
      clearTimeout(timer)
      clearTimeout(later)
      fall.close()
    },
    live (event, data) {
      if (event === 'hello' || event === 'reset') return reloadSoon()
      if (event === 'greeting') later = setTimeout(load, GREETED_MS)
      if (event !== 'traces') return
      const mine = data.traces.find((trace) => trace.id === summary?.id)
      const gone = summary?.order < data.oldest
      if (gone) head.classList.add('gone')
      if (mine !== undefined || (summary === undefined && data.traces.length > 0)) reloadSoon()
      else if (data.more > 0 && !gone) reloadSoon(UNSURE_RELOAD_MS)
    },
    key (event) {
      if (event.key === 's') return figures.toggle()
      if (figures.shown && event.key !== 'c') return event.key === 'Escape' && figures.close()
      if (event.key === 'Escape') return escape()
      if (summary === undefined) return false
      return event.key === 'c' ? copyText() : fall.key(event)
    }
  }

  async function load () {
    const mine = ++generation
    try {
      const answer = app.ahead ?? await get(`/api${tracePath(id)}/rows`, summary ? {} : FIRST_ROWS)
      app.ahead = undefined
      if (mine !== generation) return
      const first = summary === undefined || more
      // An unnecessary redraw would lose the reader's place.
      if (!more && summary?.updatedMs === answer.trace.updatedMs && summary.spans === answer.trace.spans && summary.lines === answer.trace.lines) return
      summary = answer.trace
      more = answer.more
      level.hidden = summary.lines === 0
      app.title(line(summary.name, 60))
      tools.hidden = body.hidden = false
      drawWaits(answer.rows)
      head.replaceChildren(...heading(summary, answer))
      fall.show(answer)
      if (!more) figures.load(summary.id)
      if (first && !more) {
        fall.select(wanted)
        if (wanted) openSpan(fall.selected(), { keepFocus: true })
        fall.focus()
      }
    } catch (error) {
      app.ahead = undefined
      if (mine === generation && summary === undefined) {
        head.replaceChildren(notHeld(error))
        tools.hidden = body.hidden = true // they would do nothing
      }
    }
    // The rows that have arrived are shown before the rest is requested.
    afterPaint(() => {
      if (mine !== generation) return
      app.follow({})
      if (more) load()
    })
  }

  // A running trace grows, so several batches of spans cause one request.
  function reloadSoon (ms = RELOAD_MS) {
    if (timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      load()
    }, ms)
  }

  async function openSpan (row, { keepFocus = false } = {}) {
    if (row === undefined) return
    shown = row.id
    panel.hidden = false
    body.classList.add('with-panel')
    app.rename(tracePath(summary.id, { span: location.search.includes('span=') || !keepFocus || panel.childElementCount > 0 ? row.id : '' }))
    const content = await spanPanel({ summary, row, show: (spanId) => fall.select(spanId) && openSpan(fall.selected(), { keepFocus: true }), close: closePanel })
    if (shown !== row.id) return
    panel.replaceChildren(...content)
    panel.scrollTop = 0
    if (!keepFocus && matchMedia('(max-width: 700px)').matches) panel.focus()
  }

  function closePanel () {
    shown = undefined
    panel.hidden = true
    body.classList.remove('with-panel')
    app.rename(tracePath(summary.id))
    fall.focus()
  }

  function escape () {
    if (!panel.hidden) closePanel()
    else if (!fall.zoomOut()) app.back()
    return true
  }

  function findKey (event) {
    if (event.key !== 'Enter') return
    event.preventDefault()
    fall.nextFound(event.shiftKey ? -1 : 1)
  }

  function showFound (state) {
    steps.hidden = !(state?.of > 0)
    found.replaceChildren(...state === null ? [] : state.of === 0 ? ['no match'] : [state.at > 0 ? `${count(state.at)} of ${count(state.of)}` : `${count(state.of)} found`, h('span.sr', ` ${line(state.name, 60)}`)])
  }

  // The legend of the line above the bar of a slow request, with the kinds that occur.
  function drawWaits (rows) {
    const occurs = WAITS.map((_, kind) => rows.some((row) => row.waits?.[kind] > 0))
    waits.hidden = !occurs.includes(true)
    waits.replaceChildren(h('span.quiet', 'Line above the bar:'), ...WAITS.flatMap((name, kind) => occurs[kind]
      ? [h('span', { title: WAIT_MEANINGS[kind] }, h('i', { class: `mark w${kind}`, 'aria-hidden': true }), name.toLowerCase(), WAIT_MEANINGS[kind] && h('span.meaning', `– ${WAIT_MEANINGS[kind]}`))]
      : []))
  }

  function copyText () {
    getText(`/api${tracePath(summary.id)}/text`).then((text) => copy(text, 'Trace'))
    return true
  }

  function actions () {
    const file = (label, path, name, props) => h('a.button', { href: `/api${tracePath(id)}${path}`, download: `${id}${name}`, ...props }, label)
    return h('div.actions',
      h('a.button', { href: '/compare' + query({ a: id }), title: 'Compare with the median request of its route' }, 'Compare'),
      button('Copy as text', copyText),
      file('OTLP JSON', '?download=1', '.json'),
      file('Perfetto', '/perfetto', '.perfetto.json', { title: 'A file for ui.perfetto.dev', onclick: () => say('Open the file in ui.perfetto.dev or speedscope') }))
  }

  function heading (trace, { durationMs }) {
    return [
      h('div.title',
        iconButton('back', 'Back', app.back),
        statusBadge(trace),
        h('h1', ...requestName(trace)),
        ...flagsOf(trace, { onclick: openFlag })),
      trace.error && h('p', { class: trace.state === 'error' ? 'error-line' : 'error-line mild' }, h('b', line(trace.error.type ?? 'Error', 80)), ' ', bdi(trace.error.message ?? '', 300)),
      h('dl.facts',
        fact('Duration', duration(trace.durationMs)),
        durationMs > trace.durationMs * 1.001 && fact('With late spans', duration(durationMs)),
        fact('Started', clock(trace.startMs)),
        fact('Spans', `${plural(trace.spans, 'span')}${trace.errors > 0 ? `, ${trace.errors} failed` : ''}`),
        fact(trace.services.length === 1 ? 'Service' : 'Services', h('bdi', trace.services.map(({ name }) => line(name || 'no name', 40)).join(', '))),
        trace.route !== null && fact('Route', h('a', { href: '/routes' + query({ route: trace.route, service: trace.service }) }, 'statistics and flame graph')),
        fact('Size', bytes(trace.bytes)),
        fact('Trace', idButton(trace.id, 'Trace id')))
    ].filter(Boolean)
  }

  function openFlag (event) {
    const { span } = event.currentTarget.dataset
    if (!isPlain(event) || !fall.select(span)) return
    event.preventDefault()
    event.stopPropagation()
    openSpan(fall.selected())
  }

  function notHeld (error) {
    return h('div.nothing',
      h('h1', error.status === 404 ? 'This trace is not here' : 'The trace cannot be shown'),
      h('p', error.status === 404 ? 'The viewer has not received this trace, or has dropped it to make room for newer ones. It appears here as soon as one of its spans arrives.' : error.message),
      h('a', { href: '/' }, 'All requests'))
  }
}

function legend () {
  const mark = (name, text) => h('span', h('i', { class: `mark ${name}` }), text)
  return h('div.legend', { 'aria-hidden': true }, mark('self', 'own time'), mark('whole', 'waits for children'), mark('path', 'critical path'))
}
