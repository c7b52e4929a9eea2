// Shows log lines as they arrive, the newest first. The server filters them.

import { get, query } from './api.mjs'
import { button, h, problem, say, scrolling } from './dom.mjs'
import { pauseButton } from './fields.mjs'
import { LINE_HINTS, searchField } from './filter.mjs'
import { levelSelect } from './levels.mjs'
import { inTurn, onNews } from './live.mjs'
import { linePanel } from './log-panel.mjs'
import { logRows } from './log-rows.mjs'
import { plural } from './text.mjs'

const LOAD = 300

export function logsView ({ app, host, params }) {
  const filter = { level: params.get('level') ?? '', q: params.get('q') ?? '', where: params.getAll('where') }
  const shown = { every: params.get('every') ?? '', line: params.get('line') ?? '' }
  const found = h('span.quiet')
  const newer = button('', () => { body.scrollTop = 0; body.focus() }, { hidden: true })
  const body = scrolling('Logs')
  const search = searchField(filter, changed, { label: 'Search lines', hints: LINE_HINTS })
  const panel = linePanel(() => show(''))
  const list = logRows(body, { show, address: (line) => addressOf({ ...shown, line }) })
  const switcher = button('Every line', switchEvery, { title: 'Show both lines that Fastify writes for a request' })
  const pauser = pauseButton(pause)
  const note = h('div.note')
  const load = inTurn(loadNow)
  const news = onNews(load, 'logs')
  let paused = false
  let orders = [] // of the lines, the newest first
  let newest // the order of the newest line when the list was not scrolled down
  app.title('Logs')
  host.append(h('h1.sr', 'Logs'),
    h('div.tools', search.field,
      levelSelect(filter.level, (level) => { filter.level = level; changed() }), found, newer, h('span.gap'), switcher, pauser.element, search.chips), h('div.trace-body', body, panel.element), note)
  drawSwitcher()
  body.addEventListener('scroll', countNewer, { passive: true })
  load()

  return {
    follow: {},
    search: search.focus,
    focus: () => body.focus(),
    close: search.close,
    live: (event) => !paused && news(event),
    key: (event) => event.key === 'p' ? pause() : event.key === 'Escape' ? shown.line !== '' && show('') : list.key(event, shown.line !== '')
  }

  async function loadNow () {
    const asked = query(filter)
    const answer = await get('/api/logs', { ...filter, ...app.interval, limit: LOAD }).catch(({ message }) => ({ message }))
    if (asked !== query(filter)) return loadNow() // it was changed meanwhile
    note.replaceChildren(answer.lines ? '' : problem(answer.message))
    if (answer.lines) draw(answer)
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
    switcher.ariaPressed = shown.every !== ''
  }

  function pause () {
    paused = !paused
    say(paused ? 'Paused' : 'Live')
    pauser.draw(paused)
    if (!paused) load()
    return true
  }

  function draw ({ lines, more, total, incomplete }) {
    found.textContent = `${more || incomplete ? `the newest ${lines.length}` : lines.length} of ${plural(total, 'line')}`
    body.querySelector('.nothing')?.remove()
    list.draw(lines, shown.every !== '')
    if (shown.line !== '') panel.show(shown.line, list.otherOf(shown.line))
    list.mark(shown.line)
    orders = lines.map(({ order }) => order)
    countNewer()
    if (lines.length === 0) body.append(h('p.nothing', total === 0 ? 'No line has been received yet.' : `No match${incomplete ? ' in the newest lines' : ''}.`))
  }

  // A list that is scrolled down stays where it is, so a button leads to the new lines above.
  function countNewer () {
    if (body.scrollTop === 0) newest = orders[0]
    const number = orders.filter((order) => order > newest).length
    newer.hidden = number === 0
    newer.textContent = plural(number, 'new line')
  }
}
