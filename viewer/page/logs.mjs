// Shows log lines as they arrive, the newest first. The server filters them.

import { get, query } from './api.mjs'
import { button, h, icon, say, scrolling } from './dom.mjs'
import { LINE_HINTS, searchField } from './filter.mjs'
import { clock, line, plural } from './text.mjs'

const LOAD = 300
const TEXT_MAX = 2000
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
  const elements = new Map() // by line, so that a line that stays keeps its focus
  const found = h('span.quiet', null)
  const body = scrolling('Logs')
  const search = searchField(filter, changed, { label: 'Search lines', hints: LINE_HINTS })
  const pauser = button('', pause, { class: 'with-icon' })
  let paused = false
  let loading = false
  let again = false
  app.title('Logs')
  host.append(h('h1.sr', null, 'Logs'),
    h('div.tools', null, search.field,
      levelSelect(filter.level, (level) => { filter.level = level; changed() }), found, h('span.gap', null), pauser, search.chips), body)
  drawPauser()
  load()

  return {
    follow: {},
    search: search.focus,
    focus: () => body.focus(),
    close: search.close,
    live: (event) => !paused && ['logs', 'hello', 'greeting', 'reset'].includes(event) && load(),
    key: (event) => event.key === 'p' && pause()
  }

  function changed () {
    app.rename('/logs' + query(filter))
    load()
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
    const shown = new Map(lines.map((each) => [`${each.order} ${each.row}`, each]))
    body.querySelector('.nothing')?.remove()
    for (const [key, element] of elements) {
      if (shown.has(key)) continue
      element.remove()
      elements.delete(key)
    }
    let next = body.firstChild
    for (const [key, each] of shown) {
      if (!elements.has(key)) elements.set(key, row(each))
      if (elements.get(key) === next) next = next.nextSibling
      else body.insertBefore(elements.get(key), next)
    }
    if (lines.length === 0) body.append(h('p.nothing', null, total === 0 ? 'No line has been received yet.' : 'No match.'))
  }
}

// The row of a line links to its trace if that is stored. Otherwise the row shows all of the text.
function row ({ timeMs, level, text, rest, service, trace, row }) {
  const href = row === null ? undefined : `/traces/${trace}${query({ span: row })}`
  return h(href ? 'a.log' : 'div.log.whole', { href },
    h('time.quiet', null, clock(timeMs)), levelMark(level),
    h('span.what', null, h('bdi', null, line(text, TEXT_MAX)), ' ', h('bdi.quiet', null, line(rest, TEXT_MAX))),
    h('bdi.whose.quiet', null, line(service, 60)))
}
