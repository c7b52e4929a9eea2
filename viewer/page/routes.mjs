// Routes: the figures of each, its latency over time, and links to the requests that explain them.

import { rateText } from '../views/rate.js'
import { get, query } from './api.mjs'
import { bdi, fact, focusNext, h, redrawn, scrolling, table, viewHead } from './dom.mjs'
import { facts, failures, wayButtons, ways } from './figures.mjs'
import { flame } from './flame.mjs'
import { heat, slotsOf } from './heat.mjs'
import { inTurn, onNews } from './live.mjs'
import { sortableTable } from './sortable.mjs'
import { WAITS, WAIT_MEANINGS, count, duration, line, plural, reasons, short } from './text.mjs'

const COLUMNS = [['Route', 'route'], ['Service', 'service'], ['Requests', 'count'], ['Rate', 'perSecond'], ['Failed', 'errors'], ['p50', 'p50Ms'], ['p99', 'p99Ms'], ['Slowest', 'maxMs']]

export function routesView ({ app, host }) {
  const order = { by: 'count', down: true }
  const load = inTurn(async () => {
    data = await get('/api/routes', app.interval)
    data.slots = slotsOf(data)
    data.isNarrowed = app.isNarrowed
    draw()
  })
  let data
  const body = scrolling('Routes')
  app.title('Routes')
  host.append(viewHead('Routes', app.isNarrowed ? 'The stored requests that started in the chosen time.' : 'Requests and failures since the viewer started; times of the last 1,000 requests of each route.'), body)
  load()
  return { follow: {}, live: onNews(load, 'routes'), focus: () => body.focus(), key }

  function key ({ key }) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key]
    if (step === undefined) return
    focusNext(body.querySelectorAll('th a'), step)
    return true
  }

  function draw () {
    const none = data.routes.length === 0
    redrawn(body, () => body.replaceChildren(none ? h('p.nothing', 'No request has arrived yet.') : tableOf(), more(), data.routes.some(({ slow }) => slow) ? legend() : ''))
  }

  function tableOf () {
    const columns = COLUMNS.map(([label, key]) => [key === 'perSecond' ? rateLabel(data) : label, key])
    const heads = [h('th.k-heat', { scope: 'col' }, `Latency, ${span(data)}`), h('th.k-to', { scope: 'col' }, 'Show')]
    return sortableTable({ classes: '.routes', caption: 'Routes', columns, more: heads, rows: data.routes, order, changed: draw }, (route) => h('tr', cellsOf(route, data)))
  }

  function more () {
    return data.more > 0 ? h('p.remark', `${plural(data.more, 'request')} of other routes ${data.more === 1 ? 'was' : 'were'} not counted.`) : ''
  }
}

function cellsOf (route, data) {
  const num = (key, value, bad) => h('td', { class: `num k-${key} ${bad ? 'bad' : ''}` }, value)
  return [
    h('th', { scope: 'row', class: 'k-route' }, h('a', { href: addressOf('/routes', route), 'data-key': `route ${route.service} ${route.route}` }, ...nameOf(route))),
    h('td.k-service', bdi(route.service || 'no name', 60)),
    num('count', count(route.count)),
    num('perSecond', rateText(route.perSecond)),
    num('errors', route.errors === 0 ? '–' : h('a', { href: requestsOf(route, { status: 'error' }), 'data-key': `errors ${route.service} ${route.route}` }, failures(route, route.count)), route.errors > 0),
    num('p50Ms', duration(route.p50Ms)),
    num('p99Ms', duration(route.p99Ms)),
    num('maxMs', [duration(route.maxMs), route.slow && h('div.reasons.quiet', `Slow or failed: ${reasons(route.slow)}`)]),
    h('td.k-heat', heat(route, data)),
    h('td.k-to', ways(route, `${route.service} ${route.route}`, route.route))
  ]
}

function rateLabel ({ isNarrowed }) {
  return isNarrowed ? 'Rate' : 'Rate, last minute'
}

// What the reasons in the column Slowest mean.
function legend () {
  return h('p.slow-legend', 'Below Slowest: the number of slow or failed requests, by what took most of their time. ', WAITS.map((name, i) => [h('b', name), WAIT_MEANINGS[i] && `${i === 0 ? ' ' : ': '}${WAIT_MEANINGS[i]}`, '. ']))
}

function slowTable (slow) {
  return [
    h('h2', 'Slow or failed requests'),
    h('p.sub', 'By what took most of their time.'),
    table('.figures', 'Slow or failed requests', ['Reason', '#Requests', 'Meaning'], slow.map((requests, i) => requests > 0 && [WAITS[i], count(requests), WAIT_MEANINGS[i]]).filter(Boolean))
  ]
}

function span ({ slots, slotMs, isNarrowed }) {
  return isNarrowed ? 'over time' : `last ${Math.ceil(slots * slotMs / 60_000)} min`
}

function nameOf (route) {
  const [method, ...rest] = route.route.split(' ')
  if (route.unrouted || rest.length === 0) return [bdi(route.route || 'no name'), h('span.quiet', ' no route')]
  return [h('span.method', line(method, 12)), bdi(rest.join(' '))]
}

function addressOf (path, { route, service }) {
  return path + query({ route, service })
}

function requestsOf ({ route, service, unrouted }, more) {
  return '/' + query({ ...(unrouted ? { q: route, unrouted: '1' } : { route }), service, ...more })
}

export function routeView ({ app, host, params }) {
  const [name, service] = [params.get('route') ?? '', params.get('service') ?? '']
  const head = h('div')
  const fire = h('section', { 'aria-label': 'Flame' })
  app.title(line(name, 60))
  const body = scrolling('Route', true)
  body.append(head, h('h2', 'Where the time goes'), fire)
  host.append(viewHead([...nameOf({ route: name }), h('span.path', line(service, 60))], '', ['Back to the routes', () => app.go('/routes')]), body)
  const load = inTurn(async () => {
    const data = await get('/api/routes', app.interval)
    const route = data.routes.find((each) => each.route === name && (service === '' || each.service === service))
    data.slots = slotsOf({ ...data, routes: [route].filter(Boolean) })
    data.isNarrowed = app.isNarrowed
    redrawn(head, () => head.replaceChildren(...(route === undefined ? [h('p.nothing', 'No request of this route has arrived.')] : routeFacts(route, data))))
  })
  load()
  loadFlame()
  return { follow: {}, live: onNews(load, 'routes'), key: ({ key }) => key === 'Escape' && (app.go('/routes'), true) }

  async function loadFlame () {
    fire.replaceChildren(...await flameOf(name, service, app.interval))
  }
}

function routeFacts (route, data) {
  return [
    facts(route, 'Requests', route.count, rateLabel(data), fact('Slowest', duration(route.maxMs)),
      route.repeats && fact('Repeated calls', route.repeats.map(({ shape, perRequest, savedMs }) => `${perRequest} × ${line(shape, 200)}, one after the other: a single call could save up to ${duration(savedMs)}`).join(' · '))),
    h('div.actions', [
      wayButtons(['Slowest request', route.slowest], ['Last failed', route.failed], ['Median request', route.median], ['Latest', route.latest]),
      route.slowest !== null && route.median !== null && h('a.button', { href: '/compare' + query({ a: route.slowest, b: route.median }) }, 'Compare slowest with median'),
      h('a.button', { href: requestsOf(route) }, 'All its requests')
    ]),
    h('h2', `Latency, ${span(data)}`),
    scale(data, heat(route, data, { width: Math.min(720, document.getElementById('main').clientWidth - 110), height: 120 })),
    ...(route.slow ? slowTable(route.slow) : [])
  ]
}

function scale ({ buckets }, picture) {
  const labels = [1, 10, 100, 1000].filter((ms) => buckets.includes(ms))
  return h('div.scaled', h('div.scale', { 'aria-hidden': true }, labels.map((ms) =>
    h('span', { style: { bottom: `${(buckets.indexOf(ms) + 1) / (buckets.length + 1) * 100}%` } }, short(ms)))), picture)
}

async function flameOf (route, service, interval) {
  try {
    return [flame(await get('/api/routes/flame', { route, service, ...interval }))]
  } catch (error) {
    return [h('p.quiet', error.status === 404 ? 'No request of this route is stored.' : error.message)]
  }
}
