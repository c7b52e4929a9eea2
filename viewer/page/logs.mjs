// Shows log lines as they arrive, the newest first. The server filters them.

import { get, query } from './api.mjs'
import { button, h, icon, say, scrolling } from './dom.mjs'
import { LINE_HINTS, searchField } from './filter.mjs'
import { linePanel } from './log-panel.mjs'
import { logRows } from './log-rows.mjs'
import { plural } from './text.mjs'

const LOAD = 300
const LEVELS = ['debug', 'info', 'warn', 'error']

/** The level of a line, in the level's colour. */
export function levelMark (level) {
  return h('span', { class: `level l-${level}` }, level || 'log')
}

/** A select for the lowest level that is shown. @param {string[]} [last] an extra option: value and name */
export function levelSelect (value, changed, last) {
  const options = [['', 'All lines'], ...LEVELS.map((level) => [level, `Lines ≥ ${level}`]), ...(last ? [last] : [])]
  const select = h('select', { 'aria-label': 'Level', onchange: () => changed(select.value) }, options.map(([each, label]) => h('option', { value: each, selected: each === value }, label)))
  return select
}

export function logsView ({ app, host, params }) {
  const filter = { level: params.get('level') ?? '', q: params.get('q') ?? '', where: params.getAll('where') }
  const shown = { every: params.get('every') ?? '', line: params.get('line') ?? '' }
  const found = h('span.quiet')
  const body = scrolling('Logs')
  const search = searchField(filter, changed, { label: 'Search lines', hints: LINE_HINTS })
  const panel = linePanel(() => show(''))
  const list = logRows(body, { show, address: (line) => addressOf({ ...shown, line }) })
  const switcher = button('Every line', switchEvery, { title: 'Show both lines that Fastify writes for a request' })
  const pauser = button('', pause, { class: 'with-icon' })
  let paused = false
  let loading = false
  let again = false
  app.title('Logs')
  host.append(h('h1.sr', 'Logs'),
    h('div.tools', search.field,
      levelSelect(filter.level, (level) => { filter.level = level; changed() }), found, h('span.gap'), switcher, pauser, search.chips), h('div.trace-body', body, panel.element))
  drawPauser()
  drawSwitcher()
  load()

  return {
    follow: {},
    search: search.focus,
    focus: () => body.focus(),
    close: search.close,
    live: (event) => !paused && ['logs', 'hello', 'greeting', 'reset'].includes(event) && load(),
    key: (event) => event.key === 'p' ? pause() : event.key === 'Escape' ? shown.line !== '' && show('') : list.key(event, shown.line !== '')
  }

  function changed () {
    app.rename(addressOf(shown))
    load()
  }

  function addressOf (also) {
    return '/logs' + query({ ...filter, ...also })
  }

  /** Shows a line in the panel, or closes the panel. @param {string} order of the line, or '' */
  function show (order, other) {
    if (order === '') list.focus(shown.line)
    shown.line = order
    panel.show(order, other)
    list.mark(order)
    app.rename(addressOf(shown))
    return true
  }

  function switchEvery () {
    shown.every = shown.every === '' ? '1' : ''
    drawSwitcher()
    changed()
  }

  function drawSwitcher () {
    switcher.setAttribute('aria-pressed', String(shown.every !== ''))
  }

  function pause () {
    paused = !paused
    say(paused ? 'Paused' : 'Live')
    drawPauser()
    if (!paused) load()
    return true
  }

  function drawPauser () {
    pauser.replaceChildren(icon(paused ? 'play' : 'pause'), paused ? 'Resume' : 'Pause')
    pauser.setAttribute('aria-pressed', String(paused))
  }

  // If lines change during a request, they are requested again after a pause. The pause is as long as the request, because a search may be slow.
  async function load () {
    again = loading
    if (loading) return
    loading = true
    const startedAt = performance.now()
    try {
      draw(await get('/api/logs', { ...filter, ...app.interval, limit: LOAD }))
    } finally {
      loading = false
    }
    if (again) setTimeout(load, performance.now() - startedAt)
  }

  function draw ({ lines, more, total, incomplete }) {
    found.textContent = `${more || incomplete ? `the newest ${lines.length}` : lines.length} of ${plural(total, 'line')}`
    body.querySelector('.nothing')?.remove()
    list.draw(lines, shown.every !== '')
    if (shown.line !== '') panel.show(shown.line, list.otherOf(shown.line))
    list.mark(shown.line)
    if (lines.length === 0) body.append(h('p.nothing', total === 0 ? 'No line has been received yet.' : 'No match.'))
  }
}
