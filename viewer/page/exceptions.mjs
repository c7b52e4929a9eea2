// Exceptions: the same exception in many requests is one row. Those of failed requests come first, apart from errors of clients.

import { get, query } from './api.mjs'
import { button, copy, h, icon, scrolling, viewHead } from './dom.mjs'
import { onFigures } from './routes.mjs'
import { spark } from './spark.mjs'
import { block, clock, count, line, plural } from './text.mjs'

const FIELDS = ['q', 'route', 'service', 'status']
const STATUSES = [['', 'Any status'], ['error', 'Failed'], ['4xx', '4xx'], ['5xx', '5xx']]
const TYPING_MS = 200
const OPEN_MAX = 20 // in the address

const GROUPS = [
  { title: 'Failed requests', has: ({ failed }) => failed },
  { title: 'Client errors, 4xx', about: 'The server rejected these requests. That is not a fault of the application.', has: ({ failed, status }) => !failed && status >= 400 && status < 500 },
  { title: 'Handled', about: 'These requests did not fail. The exception was recorded on the way.', has: ({ failed, status }) => !failed && !(status >= 400 && status < 500) }
]

export function exceptionsView ({ app, host, params }) {
  const filter = Object.fromEntries(FIELDS.map((name) => [name, params.get(name) ?? '']))
  const opened = new Set(params.getAll('open'))
  const body = scrolling('Exceptions')
  const found = h('span.quiet', null)
  const input = h('input', { type: 'search', placeholder: 'Search exceptions', 'aria-label': 'Search exceptions', autocomplete: 'off', spellcheck: 'false', oninput: typed })
  const selects = { route: select('Route', 'route'), service: select('Service', 'service'), status: select('Status', 'status') }
  let data
  let typing
  app.title('Exceptions')
  host.append(viewHead('Exceptions', `One row for each service, type, place and message, ignoring numbers and ids. The bars show the ${Object.keys(app.interval).length > 0 ? 'chosen time' : 'last ten minutes'}.`),
    h('div.tools', null, h('label.search', null, icon('search'), input, h('kbd', { 'aria-hidden': 'true' }, '/')), Object.values(selects), found), body)
  input.value = filter.q
  const changes = onFigures(load)
  changes('hello')
  return {
    follow: {},
    search: () => { input.focus(); input.select() },
    focus: () => body.focus(),
    close: () => clearTimeout(typing),
    live: changes,
    key
  }

  async function load () {
    data = await get('/api/exceptions', app.interval)
    draw()
  }

  function draw () {
    if (data === undefined) return
    const { exceptions, more } = data
    const shown = exceptions.filter(matcher(filter))
    const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined
    fill(selects.route, [['', 'Any route'], ...names(exceptions.map(({ route }) => route))], filter.route)
    fill(selects.service, [['', 'Any service'], ...names(exceptions.map(({ service }) => service))], filter.service)
    fill(selects.status, STATUSES, filter.status)
    found.textContent = exceptions.length === 0 ? '' : `${count(shown.length)} of ${plural(exceptions.length, 'exception')}`
    body.replaceChildren(...GROUPS.map((group) => section(group, shown.filter(group.has))).filter(Boolean),
      shown.length === 0 ? h('p.nothing', null, exceptions.length === 0 ? 'Nothing has failed.' : 'No match.') : '',
      more > 0 ? h('p.remark', null, `${plural(more, 'more exception was', 'more exceptions were')} not kept.`) : '')
    if (focused !== undefined) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus()
  }

  function section ({ title, about }, rows) {
    return rows.length > 0 && h('section.exceptions', { 'aria-label': title }, h('h2', null, title, h('span.quiet', null, ` ${count(rows.length)}`)), about && h('p.sub', null, about), rows.map(row))
  }

  function row (each) {
    const details = h('details', { class: 'exception-row', open: opened.has(each.key), ontoggle: () => toggled(each.key, details.open) },
      h('summary', { 'data-key': each.key },
        h('span', { class: `times ${each.failed ? 'bad' : 'quiet'}` }, plural(each.count, 'request')),
        h('span.answer', null, each.status !== null && h('span', { class: `code c${Math.floor(each.status / 100)}` }, String(each.status))),
        h('span.what', null, h('bdi.type', null, line(each.type || 'Error', 80)), ' ', h('bdi', null, line(each.message ?? '', 200))),
        h('span.where.quiet', null, h('bdi', null, line(each.route ?? each.service, 80))),
        h('span', { class: `over-time ${each.failed ? 'bad' : 'quiet'}` }, spark(each.histogram, data)),
        h('time.quiet.num', null, clock(each.lastMs))),
      h('div.inside', null,
        h('p.sub', null, `First at ${clock(each.firstMs)}, last at ${clock(each.lastMs)}, in `, h('bdi', null, line(each.service || 'a service without a name', 60)), each.recorded ? '' : '. No exception was recorded, but a span failed with this.'),
        each.stack !== null && h('pre', { tabindex: '0', 'aria-label': 'Stack', 'data-key': `stack ${each.key}` }, block(each.stack).text),
        h('div.actions', null,
          h('a', { class: 'button', href: '/' + query({ exception: each.key }), 'data-key': `requests ${each.key}` }, `Show ${each.count === 1 ? 'the request' : 'its requests'}`),
          each.traces.length > 0 && h('a', { class: 'button', href: `/traces/${encodeURIComponent(each.traces[0])}`, 'data-key': `last ${each.key}` }, 'Open the last one'),
          each.stack !== null && button('Copy stack', () => copy(each.stack, 'Stack'), { 'data-key': `copy ${each.key}` }))))
    return details
  }

  function toggled (key, isOpen) {
    if (isOpen === opened.has(key)) return
    if (isOpen) opened.add(key)
    else opened.delete(key)
    rename()
  }

  function rename () {
    app.rename('/exceptions' + query({ ...filter, open: [...opened].slice(-OPEN_MAX) }))
  }

  function changed () {
    rename()
    draw()
  }

  function typed () {
    clearTimeout(typing)
    typing = setTimeout(() => {
      filter.q = input.value.trim()
      changed()
    }, TYPING_MS)
  }

  function select (label, name) {
    const element = h('select', { 'aria-label': label, onchange: () => { filter[name] = element.value; changed() } })
    return element
  }

  // The arrow keys move between rows, and so do e (next) and E (previous). Escape clears the filter.
  function key (event) {
    if (event.key === 'Escape' && Object.values(filter).some((value) => value !== '')) {
      for (const name of FIELDS) filter[name] = ''
      input.value = ''
      changed()
      return true
    }
    const direction = { ArrowDown: 1, ArrowUp: -1, e: 1, E: -1 }[event.key]
    if (direction === undefined) return false
    const rows = [...body.querySelectorAll('summary')]
    const next = rows.indexOf(document.activeElement) + direction
    rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus()
    return true
  }
}

function matcher ({ q, route, service, status }) {
  const needle = q.toLowerCase()
  return (each) => (route === '' || each.route === route) && (service === '' || each.service === service) && hasStatus(each, status) &&
    (needle === '' || [each.type, each.message, each.stack, each.route, each.service].some((text) => text?.toLowerCase().includes(needle)))
}

function hasStatus (each, wanted) {
  if (wanted === '') return true
  return wanted === 'error' ? each.failed : /^[1-5]xx$/.test(wanted) ? Math.floor(each.status / 100) === Number(wanted[0]) : String(each.status) === wanted
}

function names (list) {
  return [...new Set(list)].filter(Boolean).sort().map((name) => [name, name])
}

function fill (select, options, value) {
  select.classList.toggle('set', value !== '')
  if (document.activeElement === select) return // it may be open
  const all = value === '' || options.some(([each]) => each === value) ? options : [...options, [value, value]]
  select.replaceChildren(...all.map(([each, label]) => h('option', { value: each, selected: each === value }, line(label, 80))))
}
