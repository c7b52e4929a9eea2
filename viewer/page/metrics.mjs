// Metrics: the routes, the runtime, and all instruments of applications, over the last hour or another interval.

import { metricKindOf } from '../otlp/names.js'
import { get, query } from './api.mjs'
import { LINES_MAX, chart } from './chart.mjs'
import { afterPaint, bdi, button, h, linkButton, redrawn, scrolling, tableOf } from './dom.mjs'
import { fillSelect, namesOf, searchInput, select, whenTyped } from './fields.mjs'
import { inTurn, onNews } from './live.mjs'
import { PERCENTILES, dotsOf, metricCard, statistics } from './metric-card.mjs'
import { whenReleased } from './pointer.mjs'
import { count, duration, line, number, percent, plural } from './text.mjs'

const CARDS = 24 // at first, and with each press of the button
const BY_MAX = 10 // attributes, as in the API
const SPAN_MIN_MS = 300_000

export function metricsView ({ app, host, params }) {
  const state = Object.fromEntries([...params].filter(([name]) => !['from', 'to', 'last'].includes(name))) // service, route, of, q, and for each instrument `by.<name>` and `show.<name>`
  const shared = { group: 'metrics', onSelect: (from, to) => app.narrow({ from, to }) }
  const services = select('Service', (service) => {
    Object.assign(state, { service, route: '', of: '' })
    rename()
    load()
  })
  const typing = whenTyped(() => {
    state.q = search.input.value.trim()
    limit = CARDS
    rename()
    drawInstruments()
  })
  const search = searchInput('Search instruments', { oninput: typing.typed })
  const found = h('span.quiet')
  const body = scrolling('Metrics', true)
  const nothing = h('div.nothing', { hidden: true }, h('h2', 'No metrics have arrived yet'),
    h('p', 'An app that npx light-trace runs sends them. Other apps can send OTLP metrics to'), h('pre', `${location.origin}/v1/metrics`))
  const requests = requestsSection({ state, shared, times, changed: () => { rename(); requests.set(overview) } })
  const runtime = h('div.cards')
  const instruments = h('div.cards')
  const more = button('', () => { limit += CARDS; drawInstruments() })
  const sections = [['Requests', requests.element], ['Runtime', runtime], ['Instruments', instruments, more]].map(([title, ...content]) => h('section', { hidden: true }, h('h2', title), content))
  const cards = new Map() // by what they show, so that a card that stays keeps its focus
  const seen = new IntersectionObserver(cameIntoView, { root: body, rootMargin: '200px' })
  const waiting = new Set() // cards to load
  let overview
  let known = []
  let firstMs = Infinity // of all values that the page has seen
  let limit = CARDS
  let closed = false
  let working = false
  const load = inTurn(async () => {
    const answers = await Promise.all([get('/api/metrics/overview', where()), get('/api/metrics')])
    whenReleased(() => !closed && draw(...answers))
  })
  search.input.value = state.q ?? ''
  app.title('Metrics')
  host.append(h('h1.sr', 'Metrics'), h('div.tools', services, search.element, found), body)
  body.classList.add('metrics')
  body.append(nothing, ...sections)
  load()

  return {
    follow: {},
    search: search.focus,
    focus: () => body.focus(),
    live: onNews(load, 'metrics'),
    close () {
      closed = true
      typing.stop()
      seen.disconnect()
      requests.close()
      for (const { card } of cards.values()) card.close()
    }
  }

  function where () {
    return { service: state.service, ...app.interval }
  }

  // The interval of a chart: the chosen one, or from the first value that the page knows.
  function times ({ atMs, slotMs }, lines) {
    const toMs = atMs.at(-1) + slotMs
    firstMs = Math.min(firstMs, atMs.find((_, index) => lines.some(({ values }) => values[index] != null)) ?? Infinity)
    return { atMs, toMs, fromMs: app.isNarrowed ? atMs[0] : Math.max(atMs[0], Math.min(firstMs, toMs - SPAN_MIN_MS)) }
  }

  function rename () {
    app.rename('/metrics' + query(state))
  }

  function draw (top, { instruments }) {
    overview = top
    known = instruments
    nothing.hidden = known.length > 0
    drawServices()
    requests.set(overview)
    const several = new Set(overview.runtime.map(({ service }) => service)).size > 1
    place(runtime, overview.runtime.map((each) => [`${each.service} ${each.title} ${several}`, () => ({ ...each, of: { unit: each.unit }, title: several ? `${each.title} · ${each.service}` : each.title, choice: () => ({ ...where(), service: each.service }) })]))
    drawInstruments()
    for (const each of cards.values()) want(each)
  }

  function drawServices () {
    if (services !== document.activeElement) fillSelect(services, namesOf('All services', overview.services), state.service) // it may be open
  }

  function drawInstruments () {
    const text = (state.q ?? '').toLowerCase()
    const above = new Set(overview?.runtime.flatMap(({ names }) => names))
    const matching = known.filter(({ name, description, services }) => `${name} ${description}`.toLowerCase().includes(text) && (!state.service || services.includes(state.service)))
      .sort((a, b) => above.has(a.name) - above.has(b.name)) // what is shown above comes last
    const titles = titlesOf(known)
    place(instruments, matching.slice(0, limit).map((each) => {
      const key = `${keyOf(each)} ${titles.get(each)}`
      return [key, () => instrumentCard(each, titles.get(each), key)]
    }))
    const left = matching.length - limit
    more.hidden = left <= 0
    more.textContent = `Show ${Math.min(left, CARDS)} more of ${left}`
    found.textContent = matching.length < known.length ? `${count(matching.length)} of ${plural(known.length, 'instrument')}` : plural(known.length, 'instrument')
    sections[2].hidden = matching.length === 0
    sections[0].hidden = text !== '' || !overview?.routes.length // the runtime's metrics are also among the instruments
    sections[1].hidden = text !== '' || !overview?.runtime.length
  }

  // With selects for the attribute that separates its lines, and for the statistic.
  function instrumentCard (instrument, title, key) {
    const { name, scope, unit, description, attributes, series } = instrument
    const keys = Object.keys(attributes)
    const selectOf = (label, parameter, options) => {
      if (options.length < 2) return h('span')
      return select(`${label} of ${line(title, 80)}`, (value) => {
        state[parameter] = value
        rename()
        want(cards.get(key))
      }, options, state[parameter])
    }
    const by = selectOf('Lines', `by.${name}`, [['', 'All together'], ...keys.map((key) => [key, `by ${line(key, 60)}`]), ...keys.length > 1 ? [[keys.slice(0, BY_MAX).join(), 'by all attributes']] : []])
    const show = selectOf('Statistic', `show.${name}`, statistics(instrument))
    return {
      title,
      names: [name],
      of: { scope, unit, kind: metricKindOf(instrument) },
      unit,
      more: [h('p.sub', bdi(description, 200), description && ' · ', plural(series, 'series', 'series')), h('div.selects', by, show)],
      shows: (statistic) => { show.value = statistic },
      choice: () => ({ ...where(), by: state[`by.${name}`], show: state[`show.${name}`] })
    }
  }

  // Shows these cards in this order. Those that stay are not moved, so that they keep their focus.
  function place (grid, wanted) {
    const keys = new Set(wanted.map(([key]) => key))
    for (const [key, each] of cards) {
      if (each.grid !== grid || keys.has(key)) continue
      each.card.close()
      each.card.element.remove()
      seen.unobserve(each.card.element)
      waiting.delete(each)
      cards.delete(key)
    }
    let next = grid.firstChild
    for (const [key, describe] of wanted) {
      if (!cards.has(key)) {
        const card = metricCard(describe(), { times, shared })
        cards.set(key, { card, grid, visible: false, stale: true })
        seen.observe(card.element)
      }
      const { element } = cards.get(key).card
      if (element === next) next = next.nextSibling
      else grid.insertBefore(element, next)
    }
  }

  function cameIntoView (entries) {
    for (const each of cards.values()) {
      each.visible = entries.findLast(({ target }) => target === each.card.element)?.isIntersecting ?? each.visible
      if (each.stale) want(each)
    }
  }

  function want (each) {
    each.stale = true
    if (!each.visible) return
    waiting.add(each)
    work()
  }

  // Loads one after the other, so that each is drawn in a frame of its own.
  async function work () {
    if (working) return
    working = true
    for (const each of waiting) {
      waiting.delete(each)
      each.stale = false
      await each.card.load()
      await new Promise(afterPaint)
    }
    working = false
  }
}

function keyOf ({ scope, name, unit, kind }) {
  return JSON.stringify([scope, name, unit, kind])
}

// Instruments of the same name have in their titles what tells them apart.
function titlesOf (instruments) {
  const titles = new Map(instruments.map((each) => [each, each.name]))
  for (const partOf of [({ scope }) => scope || 'no scope', ({ unit }) => unit || 'no unit', (each) => each.kind === 'sum' ? metricKindOf(each) : each.kind]) {
    for (const same of Map.groupBy(instruments, (each) => titles.get(each)).values()) {
      if (new Set(same.map(partOf)).size > 1) for (const each of same) titles.set(each, `${titles.get(each)} · ${partOf(each)}`)
    }
  }
  return titles
}

// The table of routes, and above it the charts of all of them or of one.
function requestsSection ({ state, shared, times, changed }) {
  const title = h('h3')
  const rates = chart({ ...shared, label: 'Requests per second', format: (value) => `${number(value)}/s` })
  const caption = h('span')
  const latency = chart({ ...shared, label: 'Latency', caption, format: duration })
  const list = h('div')
  return {
    element: h('div', title, h('div.cards.two', rates.element, latency.element), list),
    set,
    close () {
      rates.close()
      latency.close()
    }
  }

  function set ({ routes, more, slotMs }) {
    if (routes.length === 0) return
    const one = routes.find(({ route, service }) => route === state.route && service === (state.of ?? ''))
    title.replaceChildren(...one ? [bdi(one.route, 120), ' ', linkButton('Show all routes', () => pick())] : ['All routes'])
    const several = new Set(routes.map(({ service }) => service)).size > 1
    const sum = (index) => routes.reduce((total, { series: { errors } }) => errors[index] === null ? total : total + errors[index], null)
    const { atMs, errors, ...first } = (one ?? routes[0]).series
    const lines = routes.slice(0, LINES_MAX - 1).map(({ route, service, series }) => ({ label: several ? `${route} · ${service}` : route, series }))
    const drawn = (of, key) => of.map(({ label, series }) => ({ label, values: series[key] }))
    const rateLines = [...one ? [{ label: 'requests', values: first.rate }] : drawn(lines, 'rate'), { label: 'failed', values: one ? errors : atMs.map((_, index) => sum(index)), colour: '--bad' }]
    const drawing = times({ atMs, slotMs }, rateLines)
    caption.textContent = `Latency: ${one ? PERCENTILES.join(', ') : 'p95'}`
    rates.set({ ...drawing, lines: rateLines })
    latency.set({ ...drawing, lines: one ? PERCENTILES.map((label) => ({ label, values: first[`${label}Ms`] })) : drawn(lines, 'p95Ms'), dots: (one ? [one] : routes).flatMap(({ exemplars }) => dotsOf(exemplars)) })
    drawTable(routes, one, more)
  }

  function pick (each) {
    state.route = each?.route ?? ''
    state.of = each?.service ?? ''
    changed()
  }

  function drawTable (routes, one, more) {
    const heads = ['Route', 'Service', 'Rate', 'Failed', ...PERCENTILES, 'Show']
    const cells = (each) => [
      bdi(each.service || 'no name', 60), `${number(each.rate)}/s`, each.errorShare > 0 ? percent(each.errorShare) : '–', ...PERCENTILES.map((key) => duration(each[`${key}Ms`])),
      h('a', { href: '/' + query({ route: each.route, service: each.service }), 'aria-label': `Requests of ${line(each.route, 80)}`, 'data-key': `show ${each.service} ${each.route}` }, 'requests')
    ]
    const classOf = (index) => `k-${heads[index].toLowerCase()} ${index > 1 && index < 7 ? 'num' : ''}`
    const row = (each) => h('tr', { class: each === one && 'picked' },
      h('th.k-route', { scope: 'row' }, linkButton(bdi(each.route || 'no name'), () => pick(each === one ? undefined : each), { 'aria-pressed': each === one, 'data-key': `pick ${each.service} ${each.route}` })),
      cells(each).map((cell, index) => h('td', { class: classOf(index + 1) + (index === 2 && each.errorShare > 0 ? ' bad' : '') }, cell)))
    redrawn(list, () => list.replaceChildren(
      tableOf('.wide-table', 'Routes', heads.map((head, index) => h('th', { scope: 'col', class: classOf(index) }, head)), routes.map(row)),
      more > 0 ? h('p.remark', `${plural(more, 'more route is', 'more routes are')} not shown.`) : ''))
  }
}
