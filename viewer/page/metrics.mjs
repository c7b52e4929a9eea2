// Metrics: the routes, the runtime, and all instruments that applications send, over the last hour or another interval.

import { get, query } from './api.mjs'
import { chart } from './chart.mjs'
import { button, h, icon, scrolling } from './dom.mjs'
import { GROUP, dotsOf, metricCard, timesOf } from './metric-card.mjs'
import { whenReleased } from './pointer.mjs'
import { clock, count, duration, line, number, percent, plural } from './text.mjs'

const CARDS = 24 // shown at first, and added with each press of the button
const PAUSE_MS = 1000 // between two loads
const TYPING_MS = 150
const LABELS = { percentiles: 'Percentiles', mean: 'Mean', max: 'Highest', rate: 'Per second', value: 'Last value' }

export function metricsView ({ app, host, params }) {
  const state = Object.fromEntries(params) // service, route, of, q, from, to, last, and for each instrument `by.<name>` and `show.<name>`
  const services = h('select', { 'aria-label': 'Service', onchange: () => choose({ service: services.value, route: '', of: '' }) })
  const search = h('input', { type: 'search', placeholder: 'Search instruments', 'aria-label': 'Search instruments', autocomplete: 'off', spellcheck: 'false', oninput: typed })
  const found = h('span.quiet')
  const body = scrolling('Metrics', true)
  const nothing = h('div.nothing', { hidden: true }, h('h2', null, 'No metrics have arrived yet'), h('p', null, 'An app that runs under npx light-trace sends them without more. Others send OTLP metrics to this address:'),
    h('pre', null, `${location.origin}/v1/metrics`))
  const requests = requestsSection({ app, state, onSelect: brushed, changed: () => { rename(); requests.draw() } })
  const runtime = h('div.cards')
  const instruments = h('div.cards')
  const moreButton = button('', () => { limit += CARDS; drawInstruments() }, { hidden: true })
  const sections = {
    requests: h('section', { hidden: true, 'aria-label': 'Requests' }, h('h2', null, 'Requests'), requests.element),
    runtime: h('section', { hidden: true, 'aria-label': 'Runtime' }, h('h2', null, 'Runtime'), runtime),
    instruments: h('section', { hidden: true, 'aria-label': 'Instruments' }, h('h2', null, 'Instruments'), instruments, moreButton)
  }
  const cards = new Map() // by what they show, so that a card that stays keeps its focus
  const seen = new IntersectionObserver(cameIntoView, { root: body, rootMargin: '200px' })
  const waiting = new Set() // cards that are to be loaded
  let overview
  let known
  let limit = CARDS
  let closed = false
  let loading = false
  let again = false
  let working = false
  let timer
  let typing
  search.value = state.q ?? ''
  app.title('Metrics')
  host.append(h('h1.sr', null, 'Metrics'),
    h('div.tools', null, services, h('label.search', null, icon('search'), search, h('kbd', { 'aria-hidden': 'true' }, '/')), found, h('span.gap'), interval()), body)
  body.classList.add('metrics')
  body.append(nothing, ...Object.values(sections))
  load()

  return {
    follow: {},
    search: () => { search.focus(); search.select() },
    focus: () => body.focus(),
    live: (event) => ['metrics', 'hello', 'greeting', 'reset'].includes(event) && load(),
    close () {
      closed = true
      clearTimeout(timer)
      clearTimeout(typing)
      seen.disconnect()
      requests.close()
      for (const { card } of cards.values()) card.close()
    }
  }

  function where () {
    const { service, from, to, last } = state
    return { service, from, to, last }
  }

  function interval () {
    const { from, to } = state
    return from && to && h('span.quiet', null, `${timeOf(from)} to ${timeOf(to)} · `, h('a', { href: '/metrics' + query({ ...state, from: '', to: '' }) }, 'last hour'))
  }

  function brushed (from, to) {
    app.go('/metrics' + query({ ...state, last: '', from, to }))
  }

  function rename () {
    app.rename('/metrics' + query(state))
  }

  function choose (change) {
    Object.assign(state, change)
    rename()
    load()
  }

  function typed () {
    clearTimeout(typing)
    typing = setTimeout(() => {
      state.q = search.value.trim()
      limit = CARDS
      rename()
      drawInstruments()
    }, TYPING_MS)
  }

  // If metrics arrive during a load, it is done again after a pause.
  async function load () {
    again = loading
    if (loading || closed) return
    loading = true
    try {
      const [top, all] = await Promise.all([get('/api/metrics/overview', where()), get('/api/metrics')])
      if (closed) return
      overview = top
      known = all.instruments
      whenReleased(draw)
    } finally {
      timer = setTimeout(() => {
        loading = false
        if (again) load()
      }, PAUSE_MS)
    }
  }

  function draw () {
    if (closed) return
    drawServices()
    requests.set(overview.routes)
    nothing.hidden = known.length > 0
    sections.requests.hidden = overview.routes.length === 0
    drawRuntime()
    drawInstruments()
    for (const each of cards.values()) want(each)
  }

  function drawServices () {
    const all = [...new Set([...overview.services, ...known.flatMap((each) => each.services), state.service ?? ''])].filter(Boolean).sort()
    const options = ['', ...all].join('\n')
    if (services.dataset.options === options) return
    services.dataset.options = options
    services.replaceChildren(...['', ...all].map((name) => h('option', { value: name, selected: name === (state.service ?? '') }, name === '' ? 'All services' : line(name, 60))))
  }

  function drawRuntime () {
    const several = new Set(overview.runtime.map(({ service }) => service)).size > 1
    place(runtime, overview.runtime.map((each) => [`runtime ${each.service} ${each.title}`, () => ({
      ...each, title: several ? `${each.title} · ${each.service}` : each.title, choice: () => ({ ...where(), service: each.service })
    })]))
    sections.runtime.hidden = overview.runtime.length === 0
  }

  function drawInstruments () {
    if (known === undefined) return
    const text = (state.q ?? '').toLowerCase()
    const matching = known.filter(({ name, description, services }) => `${name} ${description ?? ''}`.toLowerCase().includes(text) && (!state.service || services.includes(state.service)))
    place(instruments, matching.slice(0, limit).map((each) => [keyOf(each), () => instrumentOf(each)]))
    const left = matching.length - limit
    moreButton.hidden = left <= 0
    moreButton.textContent = `Show ${Math.min(left, CARDS)} more of ${count(left)}`
    found.textContent = known.length === 0 ? '' : matching.length === 0 ? 'No match' : matching.length < known.length ? `${count(matching.length)} of ${plural(known.length, 'instrument')}` : plural(known.length, 'instrument')
    sections.instruments.hidden = matching.length === 0
  }

  // An instrument with its description, and selects for the attribute that separates its lines and for the statistic.
  function instrumentOf (instrument) {
    const { name, scope, unit, description, attributes, series } = instrument
    const keys = Object.keys(attributes)
    const [byName, showName] = [`by.${name}`, `show.${name}`]
    const selectOf = (label, parameter, options) => {
      const select = h('select', { 'aria-label': `${label}: ${line(name, 80)}`, onchange: () => { state[parameter] = select.value; rename(); want(cards.get(keyOf(instrument))) } }, options.map(([value, text]) => h('option', { value, selected: value === (state[parameter] ?? '') }, text)))
      return select
    }
    const by = keys.length > 0 && selectOf('Lines', byName, [['', 'All together'], ...keys.map((each) => [each, `by ${line(each, 60)}`]), ...(keys.length > 1 ? [[keys.join(','), 'by all attributes']] : [])])
    const show = h('span')
    let offered = ''
    return {
      title: name,
      names: [name],
      scope,
      unit,
      more: [h('p.sub', null, h('bdi', null, line(description ?? '', 200) || 'No description'), ` · ${count(series)} series`), h('div.selects', null, by, show)],
      choice: () => ({ ...where(), by: state[byName], show: state[showName] }),
      offers (available, shown) {
        if (available.length < 2 || offered === available.join()) return
        offered = available.join()
        show.replaceChildren(selectOf('Statistic', showName, available.map((each) => [each, LABELS[each] ?? each])))
      }
    }
  }

  // Shows these cards in this order. Those that stay are not moved, so that they keep their focus.
  function place (grid, wanted) {
    const keys = new Set(wanted.map(([key]) => key))
    for (const [key, each] of cards) {
      if (each.grid !== grid || keys.has(key)) continue
      seen.unobserve(each.card.element)
      each.card.close()
      each.card.element.remove()
      cards.delete(key)
      waiting.delete(each)
    }
    let next = grid.firstChild
    for (const [key, describe] of wanted) {
      if (!cards.has(key)) {
        const { choice, offers, ...of } = describe()
        const card = metricCard(of, { app, onSelect: brushed, choice, offers })
        cards.set(key, { card, grid, visible: false, stale: true })
        card.element.dataset.key = key
        seen.observe(card.element)
      }
      const { element } = cards.get(key).card
      if (element === next) next = next.nextSibling
      else grid.insertBefore(element, next)
    }
  }

  function cameIntoView (entries) {
    for (const { target, isIntersecting } of entries) {
      const each = cards.get(target.dataset.key)
      if (each === undefined) continue
      each.visible = isIntersecting
      if (isIntersecting && each.stale) want(each)
    }
  }

  function want (each) {
    each.stale = true
    if (!each.visible) return
    waiting.add(each)
    work()
  }

  // One after the other, each in a frame of its own.
  async function work () {
    if (working) return
    working = true
    for (const each of waiting) {
      waiting.delete(each)
      each.stale = false
      await each.card.load()
      if (closed) return
    }
    working = false
  }
}

function keyOf ({ scope, name, unit, kind }) {
  return JSON.stringify([scope, name, unit, kind])
}

function timeOf (text) {
  const ms = /^\d+$/.test(text) ? Number(text) : Date.parse(text)
  return clock(ms).slice(0, 8)
}

// The table of routes, and above it the charts of all of them or of one.
function requestsSection ({ app, state, onSelect, changed }) {
  const shared = { group: GROUP, onSelect, open: ({ href }) => app.go(href) }
  const title = h('h3')
  const rates = chart({ label: 'Requests per second', format: (value) => `${number(value)}/s`, ...shared })
  const caption = h('span')
  const latency = chart({ label: 'Latency', caption, format: duration, ...shared })
  const list = h('div')
  const element = h('div', null, title, h('div.cards.two', null, rates.element, latency.element), list)
  let routes = []
  return {
    element,
    set (next) {
      routes = next
      draw()
    },
    draw,
    close () {
      rates.close()
      latency.close()
    }
  }

  function draw () {
    const one = routes.find((each) => each.route === state.route && each.service === (state.of ?? ''))
    const [first] = routes
    if (first === undefined) return
    title.replaceChildren(...(one ? [h('bdi', null, line(one.route, 120)), ' ', button('Show all routes', () => pick(undefined), { class: 'link' })] : [routes.length === 1 ? '' : 'All routes']))
    const times = timesOf((one ?? first).series)
    if (one || routes.length === 1) drawOne(one ?? first, times)
    else drawAll(times)
    drawTable(one)
  }

  function drawOne ({ series, exemplars }, times) {
    rates.set({ ...times, lines: [{ label: 'requests', values: series.rate }, { label: 'failed', values: series.errors, colour: '--bad' }] })
    caption.textContent = 'Latency: p50, p95, p99'
    latency.set({ ...times, lines: ['p50', 'p95', 'p99'].map((label) => ({ label, values: series[`${label}Ms`] })), dots: dotsOf(exemplars) })
  }

  function drawAll (times) {
    const failed = times.atMs.map((_, at) => routes.reduce((sum, { series }) => (series.errors[at] ?? null) === null ? sum : (sum ?? 0) + series.errors[at], null))
    rates.set({ ...times, lines: [{ label: 'failed, all routes', values: failed, colour: '--bad' }, ...routes.map(({ series }, index) => ({ label: nameOf(routes[index]), values: series.rate }))] })
    caption.textContent = 'Latency: p95'
    latency.set({ ...times, lines: routes.map((each) => ({ label: nameOf(each), values: each.series.p95Ms })), dots: routes.flatMap(({ exemplars }) => dotsOf(exemplars)) })
  }

  function nameOf ({ route, service }) {
    return new Set(routes.map((each) => each.service)).size > 1 ? `${route} · ${service}` : route
  }

  function pick (each) {
    state.route = each?.route ?? ''
    state.of = each?.service ?? ''
    changed()
  }

  function drawTable (one) {
    const held = list.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') : null
    const cell = (value, bad) => h('td', { class: bad ? 'num bad' : 'num' }, value)
    list.replaceChildren(h('table.wide-table.metrics-routes', null, h('caption.sr', null, 'Routes'),
      h('thead', null, h('tr', null, ['Route', 'Service', 'Per second', 'Failed', 'p50', 'p95', 'p99', 'Show'].map((name, index) => h('th', { scope: 'col', class: `${index > 1 && index < 7 ? 'num' : ''} k-${name.split(' ')[0].toLowerCase()}` }, name)))),
      h('tbody', null, routes.map((each) => h('tr', { class: each === one ? 'picked' : undefined },
        h('th', { scope: 'row', class: 'k-route' }, button(h('bdi', null, line(each.route) || 'no name'), () => pick(each === one ? undefined : each), { class: 'link', 'aria-pressed': String(each === one), 'data-key': `pick ${each.service} ${each.route}` })),
        h('td.k-service', null, h('bdi', null, line(each.service || 'no name', 60))),
        cell(number(each.rate)), cell(each.errorShare > 0 ? percent(each.errorShare) : '–', each.errorShare > 0), h('td.num.k-p50', null, duration(each.p50Ms)), cell(duration(each.p95Ms)), cell(duration(each.p99Ms)),
        h('td.k-show', null, h('a', { href: '/' + query({ route: each.route, service: each.service }), 'aria-label': `Requests of ${line(each.route, 80)}`, 'data-key': `show ${each.service} ${each.route}` }, 'requests')))))))
    if (held !== null) list.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus()
  }
}
