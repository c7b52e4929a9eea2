// Exceptions: the same exception in many requests is one row. Those of failed requests come first, apart from errors of clients.

import { get, query, tracePath } from './api.mjs'
import { bdi, button, copy, focusNext, h, redrawn, scrolling, viewHead } from './dom.mjs'
import { fillSelect, namesOf, searchInput, select, whenTyped } from './fields.mjs'
import { inTurn, onNews } from './live.mjs'
import { statusMark } from './request-line.mjs'
import { spark } from './spark.mjs'
import { block, clock, count, line, plural } from './text.mjs'

const FIELDS = ['q', 'route', 'service', 'status']
const STATUSES = [['', 'Any status'], ['error', 'Failed'], ['4xx', '4xx'], ['5xx', '5xx']]
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
  const found = h('span.quiet')
  const typing = whenTyped(() => narrow('q', search.input.value.trim()))
  const search = searchInput('Search exceptions', { oninput: typing.typed })
  const route = select('Route', (value) => narrow('route', value))
  const service = select('Service', (value) => narrow('service', value))
  const status = select('Status', (value) => narrow('status', value), STATUSES, filter.status)
  const load = inTurn(async () => {
    data = await get('/api/exceptions', app.interval)
    draw()
  })
  let data
  app.title('Exceptions')
  host.append(viewHead('Exceptions', `One row for each service, type, place and message, ignoring numbers and ids. The bars show the ${app.isNarrowed ? 'chosen time' : 'last ten minutes'}.`),
    h('div.tools', search.element, route, service, status, found), body)
  search.input.value = filter.q
  load()
  return {
    follow: {},
    search: search.focus,
    focus: () => body.focus(),
    close: typing.stop,
    live: onNews(load, 'routes'),
    key
  }

  function draw () {
    if (data === undefined) return
    const { exceptions, more } = data
    const shown = exceptions.filter(matcher(filter))
    fill(route, 'Any route', 'route', exceptions.flatMap(({ routes }) => routes))
    fill(service, 'Any service', 'service', exceptions.map((each) => each.service))
    found.textContent = exceptions.length === 0 ? '' : `${count(shown.length)} of ${plural(exceptions.length, 'exception')}`
    redrawn(body, () => body.replaceChildren(...GROUPS.map((group) => section(group, shown.filter(group.has))).filter(Boolean),
      shown.length === 0 ? h('p.nothing', exceptions.length === 0 ? 'Nothing has failed.' : 'No match.') : '',
      more > 0 ? h('p.remark', `${plural(more, 'more exception was', 'more exceptions were')} not kept.`) : ''))
  }

  // A select that is in use may be open, so it keeps its options.
  function fill (select, any, name, values) {
    if (select !== document.activeElement) fillSelect(select, namesOf(any, values), filter[name])
  }

  function section ({ title, about }, rows) {
    return rows.length > 0 && h('section.exceptions', { 'aria-label': title }, h('h2', title, h('span.quiet', ` ${count(rows.length)}`)), about && h('p.sub', about), rows.map(row))
  }

  function row (each) {
    const details = h('details.exception-row', { open: opened.has(each.key), ontoggle: () => toggled(each.key, details.open) },
      h('summary', { 'data-key': each.key },
        h('span', { class: `times ${each.failed ? 'bad' : 'quiet'}` }, plural(each.count, 'request')),
        h('span.answer', each.status !== null && statusMark(each.status)),
        h('span.what', h('bdi.type', line(each.type || 'Error', 80)), ' ', bdi(each.message ?? '', 200)),
        h('span.where.quiet', { title: each.routes.map((route) => line(route, 80)).join(', ') }, bdi(each.routes[0] ?? each.service, 80), each.routes.length > 1 ? ` +${each.routes.length - 1}` : ''),
        h('span', { class: `over-time ${each.failed ? 'bad' : 'quiet'}` }, spark(each.histogram, data)),
        h('time.quiet.num', clock(each.lastMs))),
      h('div.inside',
        h('p.sub', `First at ${clock(each.firstMs)}, last at ${clock(each.lastMs)}, in `, bdi(each.service || 'a service without a name', 60), each.recorded ? '' : '. No exception was recorded, but a span failed with this.'),
        each.routes.length > 1 && h('p.sub', 'Routes: ', each.routes.map((route, i) => [i > 0 && ', ', bdi(route, 80)])),
        each.stack !== null && h('pre', { tabindex: '0', 'aria-label': 'Stack', 'data-key': `stack ${each.key}` }, block(each.stack).text),
        h('div.actions',
          h('a.button', { href: '/' + query({ exception: each.key }), 'data-key': `requests ${each.key}` }, `Show ${each.count === 1 ? 'the request' : 'its requests'}`),
          each.traces.length > 0 && h('a.button', { href: tracePath(each.traces[0]), 'data-key': `last ${each.key}` }, 'Open the last one'),
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

  function narrow (name, value) {
    filter[name] = value
    changed()
  }

  // The arrow keys move between rows, and so do e (next) and E (previous). Escape clears the filter.
  function key (event) {
    if (event.key === 'Escape' && Object.values(filter).some((value) => value !== '')) {
      for (const name of FIELDS) filter[name] = ''
      search.input.value = ''
      fillSelect(status, STATUSES)
      changed()
      return true
    }
    const direction = { ArrowDown: 1, ArrowUp: -1, e: 1, E: -1 }[event.key]
    if (direction === undefined) return false
    focusNext(body.querySelectorAll('summary'), direction)
    return true
  }
}

function matcher ({ q, route, service, status }) {
  const needle = q.toLowerCase()
  return (each) => (route === '' || each.routes.includes(route)) && (service === '' || each.service === service) && hasStatus(each, status) &&
    (needle === '' || [each.type, each.message, each.stack, ...each.routes, each.service].some((text) => text?.toLowerCase().includes(needle)))
}

function hasStatus (each, wanted) {
  if (wanted === '') return true
  return wanted === 'error' ? each.failed : /^[1-5]xx$/.test(wanted) ? Math.floor(each.status / 100) === Number(wanted[0]) : String(each.status) === wanted
}
