// Routes: the figures of each, its latency over time, and links to the requests that explain them.

import { rateText } from '../views/rate.js'
import { get, query } from './api.mjs'
import { flame } from './flame.mjs'
import { button, fact, h, scrolling, table, viewHead } from './dom.mjs'
import { heat, slotsOf } from './heat.mjs'
import { WAITS, WAIT_MEANINGS, count, duration, line, percent, plural, reasons, short } from './text.mjs'

const COLUMNS = [['Route', 'route'], ['Service', 'service'], ['Requests', 'count'], ['Rate', 'perSecond'], ['Failed', 'errors'], ['p50', 'p50Ms'], ['p99', 'p99Ms'], ['Slowest', 'maxMs']]
const TEXTS = new Set(['route', 'service'])

export function routesView ({ app, host }) {
  let data
  let by = 'count'
  let down = true
  const body = scrolling('Routes')
  app.title('Routes')
  host.append(viewHead('Routes', isNarrowed(app) ? 'The stored requests that started in the chosen time.' : 'Requests and failures since the viewer started; times of the last 1,000 requests of each route.'), body)
  const changes = onFigures(load)
  changes('hello')
  return { follow: {}, live: changes, focus: () => body.focus() }

  async function load () {
    data = await get('/api/routes', app.interval)
    data.slots = slotsOf(data)
    data.isNarrowed = isNarrowed(app)
    draw()
  }

  function draw () {
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') : null
    body.replaceChildren(data.routes.length === 0 ? h('p.nothing', null, 'No request has arrived yet.') : tableOf(), more(), data.routes.some(({ slow }) => slow) ? legend() : '')
    if (focused !== null) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus()
  }

  function tableOf () {
    const sorted = data.routes.toSorted((a, b) => (down ? -1 : 1) * (TEXTS.has(by) ? String(a[by]).localeCompare(String(b[by])) : (a[by] ?? 0) - (b[by] ?? 0)))
    return h('table.wide-table.routes', null, h('caption.sr', null, 'Routes'),
      h('thead', null, h('tr', null,
        COLUMNS.map(([label, key]) => h('th', { scope: 'col', class: `${TEXTS.has(key) ? '' : 'num'} k-${key}`, 'aria-sort': key === by ? (down ? 'descending' : 'ascending') : undefined },
          button(key === 'perSecond' ? rateLabel(data) : label, () => { down = key === by ? !down : !TEXTS.has(key); by = key; draw() }, { class: 'sort', 'data-key': `sort ${key}` }))),
        h('th', { scope: 'col', class: 'k-heat' }, `Latency, ${span(data)}`), h('th', { scope: 'col', class: 'k-to' }, 'Show'))),
      h('tbody', null, sorted.map((route) => h('tr', null, cellsOf(route, data)))))
  }

  function more () {
    return data.more > 0 ? h('p.remark', null, `${plural(data.more, 'request')} of other routes ${data.more === 1 ? 'was' : 'were'} not counted.`) : ''
  }
}

function cellsOf (route, data) {
  const num = (key, value, bad) => h('td', { class: `num k-${key} ${bad ? 'bad' : ''}` }, value)
  return [
    h('th', { scope: 'row', class: 'k-route' }, h('a', { href: addressOf('/routes', route), 'data-key': `route ${route.service} ${route.route}` }, ...nameOf(route))),
    h('td.k-service', null, h('bdi', null, line(route.service || 'no name', 60))),
    num('count', count(route.count)),
    num('perSecond', rateText(route.perSecond)),
    num('errors', route.errors === 0 ? '–' : h('a', { href: requestsOf(route, { status: 'error' }), 'data-key': `errors ${route.service} ${route.route}` }, `${count(route.errors)} · ${percent(route.errors / route.count)}`), route.errors > 0),
    num('p50Ms', duration(route.p50Ms)),
    num('p99Ms', duration(route.p99Ms)),
    num('maxMs', [duration(route.maxMs), route.slow && h('div.reasons.quiet', null, `Slow: ${reasons(route.slow)}`)]),
    h('td.k-heat', null, heat(route, data)),
    h('td.k-to', null, ways(route))
  ]
}

function rateLabel ({ isNarrowed }) {
  return isNarrowed ? 'Rate' : 'Rate, last minute'
}

// What the reasons in the column Slowest mean.
function legend () {
  return h('p.slow-legend', null, 'Below Slowest: the number of slow requests, by what took most of their time. ', WAITS.map((name, i) => [h('b', null, name), WAIT_MEANINGS[i] && `${i === 0 ? ' ' : ': '}${WAIT_MEANINGS[i]}`, '. ']))
}

function slowTable (slow) {
  return [
    h('h2', null, 'Slow requests'),
    h('p.sub', null, 'By what took most of their time.'),
    table('Slow requests', ['Reason', '#Requests', 'Meaning'], slow.map((requests, i) => requests > 0 && [WAITS[i], count(requests), WAIT_MEANINGS[i]]).filter(Boolean), { class: 'figures' })
  ]
}

function isNarrowed ({ interval }) {
  return Object.keys(interval).length > 0
}

function span ({ slots, slotMs, isNarrowed }) {
  return isNarrowed ? 'over time' : `last ${Math.ceil(slots * slotMs / 60_000)} min`
}

function nameOf (route) {
  const [method, ...rest] = route.route.split(' ')
  if (route.unrouted || rest.length === 0) return [h('bdi', null, line(route.route) || 'no name'), h('span.quiet', null, ' no route')]
  return [h('span.method', null, line(method, 12)), h('bdi', null, line(rest.join(' ')))]
}

// Links from a route to its most useful requests.
function ways (route) {
  const to = (label, id) => id !== null && h('a', { href: `/traces/${encodeURIComponent(id)}`, 'aria-label': `${label} request of ${line(route.route)}`, 'data-key': `${label} ${route.service} ${route.route}` }, label)
  return h('span.ways', null, [to('slowest', route.slowest), to('failed', route.failed), to('median', route.median)].filter(Boolean))
}

function addressOf (path, { route, service }) {
  return path + query({ route, service })
}

function requestsOf ({ route, service, unrouted }, more) {
  return '/' + query({ ...(unrouted ? { q: route, unrouted: '1' } : { route }), service, ...more })
}

// The server announces that figures have changed. One request runs at a time. What changed meanwhile is fetched afterwards.
export function onFigures (load) {
  let loading = false
  let again = false
  return async function changed (event) {
    if (!['routes', 'hello', 'greeting', 'reset'].includes(event)) return
    again = loading
    if (loading) return
    loading = true
    try {
      await load()
    } finally {
      loading = false
    }
    if (again) changed(event)
  }
}

export function routeView ({ app, host, params }) {
  const [name, service] = [params.get('route') ?? '', params.get('service') ?? '']
  const facts = h('div')
  const fire = h('section', { 'aria-label': 'Flame' })
  app.title(line(name, 60))
  const body = scrolling('Route', true)
  body.append(facts, h('h2', null, 'Where the time goes'), fire)
  host.append(viewHead([...nameOf({ route: name }), h('span.path', null, line(service, 60))], '', ['Back to the routes', () => app.go('/routes')]), body)
  const changes = onFigures(load)
  changes('hello')
  loadFlame()
  return { follow: {}, live: changes, key: ({ key }) => key === 'Escape' && (app.go('/routes'), true) }

  async function load () {
    const data = await get('/api/routes', app.interval)
    const route = data.routes.find((each) => each.route === name && (service === '' || each.service === service))
    data.slots = slotsOf({ ...data, routes: [route].filter(Boolean) })
    data.isNarrowed = isNarrowed(app)
    facts.replaceChildren(...(route === undefined ? [h('p.nothing', null, 'No request of this route has arrived.')] : routeFacts(route, data)))
  }

  async function loadFlame () {
    fire.replaceChildren(...await flameOf(name, service, app.interval))
  }
}

function routeFacts (route, data) {
  const to = (label, id) => id !== null && h('a', { class: 'button', href: `/traces/${encodeURIComponent(id)}` }, label)
  return [
    h('dl.facts.big', null,
      fact('Requests', count(route.count)), fact(rateLabel(data), rateText(route.perSecond)), fact('Failed', route.errors === 0 ? 'none' : `${count(route.errors)} · ${percent(route.errors / route.count)}`, route.errors > 0),
      fact('p50', duration(route.p50Ms)), fact('p99', duration(route.p99Ms)), fact('Slowest', duration(route.maxMs)),
      route.repeats && fact('Repeated calls', route.repeats.map(({ shape, perRequest, savedMs }) => `${perRequest} × ${line(shape, 200)}, one after the other: a single call could save up to ${duration(savedMs)}`).join(' · '))),
    h('div.actions', null, [
      to('Slowest request', route.slowest), to('Last failed', route.failed), to('Median request', route.median), to('Latest', route.latest),
      route.slowest !== null && route.median !== null && h('a', { class: 'button', href: '/compare' + query({ a: route.slowest, b: route.median }) }, 'Compare slowest with median'),
      h('a', { class: 'button', href: requestsOf(route) }, 'All its requests')
    ].filter(Boolean)),
    h('h2', null, `Latency, ${span(data)}`),
    scale(data, heat(route, data, { width: Math.min(720, document.getElementById('main').clientWidth - 110), height: 120 })),
    ...(route.slow ? slowTable(route.slow) : [])
  ]
}

function scale ({ buckets }, picture) {
  const labels = [1, 10, 100, 1000].filter((ms) => buckets.includes(ms))
  return h('div.scaled', null, h('div', { class: 'scale', 'aria-hidden': 'true' }, labels.map((ms) =>
    h('span', { style: { bottom: `${(buckets.indexOf(ms) + 1) / (buckets.length + 1) * 100}%` } }, short(ms)))), picture)
}

async function flameOf (route, service, interval) {
  try {
    return [flame(await get('/api/routes/flame', { route, service, ...interval }))]
  } catch (error) {
    return [h('p.quiet', null, error.status === 404 ? 'No request of this route is stored.' : error.message)]
  }
}
