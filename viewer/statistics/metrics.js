'use strict'

// Answers the API's questions about metrics: merges series and slots.

const { METRIC_KINDS, metricKindOf } = require('../otlp/names')
const { MS_IN } = require('../otlp/units')
const { BadParameter, integer, interval, oneOf, required } = require('../store/parameters')
const { Slices } = require('../store/slices')
const { SLOT_MS, SLOTS_MAX, SPREAD_MAX_MS } = require('../store/metric-series')

const POINTS_MAX = 1000
const SERIES_MAX = 50
const ROUTES_MAX = 100
const BY_MAX = 10
const VALUES_MAX = 100 // attributes that are listed, and values of each
const EXEMPLARS_MAX = 100
const SHARES = [0.5, 0.95, 0.99]
const NO_FIGURES = { percentiles: [null, null, null], highest: null }
const HELD_SLOTS_MAX = SPREAD_MAX_MS / SLOT_MS
const AWAITED_MS = 300_000 // a service that is silent for longer is not expected to send the rest of its newest slot

// The current and the old name, in the conventions of OpenTelemetry.
const REQUESTS = ['http.server.request.duration', 'http.server.duration']

// What the page shows of a runtime, for each title: the first of these metrics that a service has, and others in the same chart.
/** @type {[string, string[]][]} */
const RUNTIME = [
  ['Event loop delay', ['nodejs.eventloop.delay.p99', 'nodejs.eventloop.delay.p90', 'nodejs.eventloop.delay.p50', 'nodejs.eventloop.delay.max']],
  ['Event loop utilization', ['nodejs.eventloop.utilization']],
  ['Garbage collection', ['v8js.gc.duration', 'jvm.gc.duration']],
  ['Heap', ['v8js.memory.heap.used', 'jvm.memory.used', 'go.memory.used']],
  ['CPU', ['process.cpu.utilization', 'process.cpu.time', 'jvm.cpu.recent_utilization']],
  ['Memory', ['process.memory.usage', 'process.runtime.cpython.memory']],
  ['Active resources', ['v8js.resource.active']],
  ['Threads and goroutines', ['go.goroutine.count', 'jvm.thread.count']]
]

class MetricStatistics {
  #store
  #now
  #sliceMs

  /** @param {import('../store/trace-store').TraceStore} store */
  constructor (store, { now = Date.now, sliceMs = undefined } = {}) {
    this.#store = store
    this.#now = now
    this.#sliceMs = sliceMs
  }

  /** The answer of GET /api/metrics. */
  list () {
    const instruments = this.#store.metrics.instruments()
    const { series, bytes, dropped } = this.#store.metrics.stats
    return { nowMs: this.#now(), slotMs: SLOT_MS, bytes, series, dropped, instruments: instruments.map(instrumentJson).sort((a, b) => a.name < b.name ? -1 : 1) }
  }

  /** The answer of GET /api/metrics/data, or null if there is no such metric. @param {URLSearchParams} query @throws BadParameter */
  async data (query) {
    const name = required(query, 'name')
    const by = (query.get('by') ?? '').split(',').filter((key) => key !== '')
    if (by.length > BY_MAX) throw new BadParameter(`by: at most ${BY_MAX} attributes`)
    const window = this.#window(query)
    const service = query.get('service')
    const filters = query.getAll('attr').map(attributeFilter)
    const named = this.#store.metrics.instruments().filter(instrumentFilter(name, query))
    if (named.length === 0) return null
    // Another library may have a metric of this name with another unit or kind: it cannot be in the same chart.
    const own = service ? named.filter((each) => servicesOf(each).has(service)) : named
    const shown = (own.length === 0 ? named : own).reduce((latest, each) => lastMsOf(each) > lastMsOf(latest) ? each : latest)
    const groups = new Map()
    const measured = this.#measured(window)
    const slices = new Slices(this.#sliceMs)
    for await (const series of inSlices(seriesOf(named.filter((each) => isAlike(each, shown))), slices)) {
      const times = measured(series)
      if ((service && series.origin.service !== service) || !filters.every((matches) => matches(series.attributes))) continue
      const attributes = by.filter((key) => series.attributes.has(key)).map((key) => [key, series.attributes.get(key)])
      const key = JSON.stringify([series.origin.service, attributes])
      let group = groups.get(key)
      if (group === undefined) groups.set(key, group = { service: series.origin.service, attributes: Object.fromEntries(attributes), chart: chartOf(shown, window, times) })
      group.chart.take(series)
    }
    const sorted = [...groups.values()].sort((a, b) => b.chart.size - a.chart.size)
    const answered = []
    for await (const { attributes, service: of, chart } of inSlices(sorted.slice(0, SERIES_MAX), slices)) {
      answered.push({ attributes, service: of, ...await slices.run(chart.figures()), exemplars: this.#exemplars(chart, window) })
    }
    return {
      name,
      unit: shown.unit,
      description: shown.description,
      kind: shown.kind,
      monotonic: shown.monotonic,
      slotMs: window.pointMs,
      atMs: window.atMs,
      series: answered,
      more: Math.max(0, sorted.length - SERIES_MAX)
    }
  }

  /** The answer of GET /api/metrics/overview. @param {URLSearchParams} query @throws BadParameter */
  async overview (query) {
    const window = this.#window(query)
    const service = query.get('service')
    const instruments = this.#store.metrics.instruments()
    const services = new Set()
    for (const each of instruments) for (const { origin } of each.series.values()) services.add(origin.service)
    const routes = new Map()
    const requests = requestsOf(instruments, window)
    const measured = this.#measured(window)
    const slices = new Slices(this.#sliceMs)
    for await (const series of inSlices(seriesOf(instruments.filter(isOfRequests)), slices)) {
      if (service && series.origin.service !== service) continue
      const { name, unit } = series.instrument
      const own = requests.get(series.origin.service)
      if (own === undefined || own.name !== name || own.unit !== unit) continue
      const times = measured(series)
      const { attributes } = series
      const method = attributes.get('http.request.method') ?? attributes.get('http.method') ?? ''
      const route = `${method} ${attributes.get('http.route') ?? '(no route)'}`.trim()
      const key = JSON.stringify([series.origin.service, route])
      let entry = routes.get(key)
      if (entry === undefined) routes.set(key, entry = { service: series.origin.service, route, unitMs: MS_IN[unit], all: new HistogramChart(window, times), failed: new HistogramChart(window, times) })
      entry.all.take(series)
      if (isFailure(attributes)) entry.failed.take(series)
    }
    const sorted = [...routes.values()].sort((a, b) => b.all.size - a.all.size)
    const answered = []
    for await (const route of inSlices(sorted.slice(0, ROUTES_MAX), slices)) answered.push(await slices.run(this.#routeJson(route, window)))
    return {
      nowMs: this.#now(),
      slotMs: window.pointMs,
      services: [...services].sort(),
      routes: answered,
      more: Math.max(0, sorted.length - ROUTES_MAX),
      runtime: runtimeOf(instruments, service)
    }
  }

  * #routeJson ({ service, route, unitMs, all, failed }, window) {
    const { rate, p50, p95, p99 } = yield * all.figures()
    const { rate: failures } = failed.rates()
    const errors = failures.map((value, i) => value ?? (rate[i] === null ? null : 0))
    const toMs = (value) => value === null ? null : rounded(value * unitMs)
    const [p50Ms, p95Ms, p99Ms] = all.whole === null ? [null, null, null] : all.whole.figures(SHARES).percentiles.map(toMs)
    return {
      service,
      route,
      rate: rounded(all.meanRate),
      errorShare: all.size === 0 ? 0 : rounded(failed.size / all.size),
      p50Ms,
      p95Ms,
      p99Ms,
      series: { atMs: window.atMs, rate, errors, p50Ms: p50.map(toMs), p95Ms: p95.map(toMs), p99Ms: p99.map(toMs) },
      exemplars: this.#exemplars(all, window).map(({ value, ...exemplar }) => ({ ...exemplar, value: toMs(value) }))
    }
  }

  #window (query) {
    const nowMs = this.#now()
    const { fromMs, toMs } = interval(query, nowMs) ?? { fromMs: 0, toMs: nowMs }
    const points = integer(query, 'points', 1, POINTS_MAX) ?? SLOTS_MAX
    const last = Math.floor(Math.min(toMs, nowMs) / SLOT_MS)
    const first = Math.max(Math.floor(fromMs / SLOT_MS), Math.floor(nowMs / SLOT_MS) - SLOTS_MAX + 1)
    return new Window(first, Math.max(0, last - first + 1), points)
  }

  /** Returns a function that adds a series to what was measured of its service. */
  #measured (window) {
    const services = new Map()
    return (series) => {
      const { service } = series.origin
      let times = services.get(service)
      if (times === undefined) services.set(service, times = new MeasuredTimes(window, this.#store.metrics.lastOf(service), this.#now()))
      times.take(series)
      return times
    }
  }

  #exemplars ({ exemplars }, { fromMs, toMs }) {
    return exemplars.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).sort((a, b) => b.atMs - a.atMs).slice(0, EXEMPLARS_MAX)
      .map(({ atMs, value, traceId, spanId }) => ({ atMs, value, traceId, spanId, held: this.#store.get(traceId) !== undefined }))
  }
}

/** Slots, several of which may be one point of the answer. */
class Window {
  constructor (first, slots, points) {
    this.first = first
    this.end = first + slots
    this.slotsPerPoint = Math.max(1, Math.ceil(slots / points))
    this.length = Math.ceil(slots / this.slotsPerPoint)
    this.pointMs = this.slotsPerPoint * SLOT_MS
    this.fromMs = first * SLOT_MS
    this.toMs = this.end * SLOT_MS
    this.atMs = Array.from({ length: this.length }, (_, i) => this.fromMs + i * this.pointMs)
  }

  pointOf (slot) { return Math.floor((slot - this.first) / this.slotsPerPoint) }
}

function seriesOf (instruments) {
  return instruments.flatMap(({ series }) => [...series.values()])
}

async function * inSlices (list, slices) {
  for (const item of list) {
    if (slices.isDue) await slices.rest()
    yield item
  }
}

/** The slots of the window in which a series was measured, and the index of what was. A sender of deltas sends none while nothing is added. */
function * slotsOf ({ slots, isDelta }, { first, end }) {
  for (let i = 0; i < slots.length; i++) {
    if (isDelta && i > 0) for (let idle = Math.max(slots[i - 1] + 1, first); idle < Math.min(slots[i], end); idle++) yield [idle, undefined]
    if (slots[i] >= first && slots[i] < end) yield [slots[i], i]
  }
}

function chartOf ({ kind, monotonic }, window, times) {
  if (kind === 'gauge') return new ValueChart(window, true)
  if (kind === 'sum') return monotonic ? new RateChart(window, times) : new ValueChart(window, false)
  return new HistogramChart(window, times)
}

/**
 * When all series of a service were measured. They share it: what one of them did not count in this time, it counted as nothing. The newest
 * slot ends with what was measured in it, because its rest has not been sent yet.
 */
class MeasuredTimes {
  #begins // of each slot, in milliseconds after its start; NaN: nothing was measured
  #endMs = 0
  #ms
  #now

  /** @param {{ lastMs: number, newestMs: number }} last of the service */
  constructor (window, last, now) {
    this.window = window
    this.#begins = new Float64Array(window.end - window.first).fill(NaN)
    this.last = last
    this.#now = now
  }

  take (series) {
    const { offsets, isDelta, lastMs, newestMs } = series
    for (const [slot, i] of slotsOf(series, this.window)) {
      const at = slot - this.window.first
      const begin = isDelta && i !== 0 ? 0 : offsets[i]
      if (!(this.#begins[at] <= begin)) this.#begins[at] = begin
    }
    // Its other metrics show until when it measured.
    const known = isDelta ? this.last : { lastMs, newestMs }
    if (this.#now - known.lastMs <= AWAITED_MS) this.#endMs = Math.max(this.#endMs, known.newestMs)
  }

  /** Of each point of the answer. Asked for when all series have been taken. */
  get ms () {
    return (this.#ms ??= this.#msOfPoints())
  }

  #msOfPoints () {
    const { first, length } = this.window
    const ms = new Float64Array(length)
    for (const [i, begin] of this.#begins.entries()) {
      if (Number.isNaN(begin)) continue
      const measured = Math.min(this.#endMs - (first + i) * SLOT_MS, SLOT_MS) - begin
      ms[this.window.pointOf(first + i)] += measured > 0 ? measured : SLOT_MS - begin
    }
    return ms
  }
}

/** Last values: of sums, added up over the series; of gauges, their mean. */
class ValueChart {
  #sums
  #counts
  #isMean
  exemplars = []
  size = 0

  constructor (window, isMean) {
    this.window = window
    this.#isMean = isMean
    this.#sums = new Float64Array(window.length)
    this.#counts = new Uint32Array(window.length)
  }

  take (series) {
    this.exemplars.push(...series.exemplars)
    const { window } = this
    const { slots, values } = series
    const last = new Float64Array(window.length).fill(NaN)
    for (let i = 0; i < slots.length; i++) {
      // A value holds until the next, so that series that are sent at other times can be added up. The newest holds as long as the one before did.
      const gap = i + 1 < slots.length ? slots[i + 1] - slots[i] : i === 0 ? 1 : slots[i] - slots[i - 1]
      const end = Math.min(window.end, slots[i] + (gap <= HELD_SLOTS_MAX ? gap : 1))
      for (let slot = Math.max(slots[i], window.first); slot < end; slot++) last[window.pointOf(slot)] = values[i]
    }
    for (let i = 0; i < last.length; i++) {
      if (Number.isNaN(last[i])) continue
      this.#sums[i] += last[i]
      this.#counts[i]++
    }
    this.size += Math.abs(values.at(-1) ?? 0)
  }

  * figures () {
    return { value: Array.from(this.#sums, (sum, i) => this.#counts[i] === 0 ? null : finite(this.#isMean ? sum / this.#counts[i] : sum)) }
  }
}

/** How much was added per second. */
class RateChart {
  #times
  #added
  #has
  exemplars = []
  size = 0 // all that was added

  /** @param {MeasuredTimes} times of the service; complete when the figures are made */
  constructor (window, times) {
    this.window = window
    this.#times = times
    this.#added = new Float64Array(window.length)
    this.#has = new Uint8Array(window.length)
  }

  /** Over the time in which the service was measured. */
  get meanRate () {
    const ms = this.#times.ms.reduce((sum, each) => sum + each, 0)
    return ms === 0 ? 0 : this.size / ms * 1000
  }

  take (series) {
    this.exemplars.push(...series.exemplars)
    for (const [slot, i] of slotsOf(series, this.window)) {
      const point = this.window.pointOf(slot)
      this.#has[point] = 1
      if (i === undefined) continue
      const amount = this.amountOf(series.values[i], point, series)
      this.#added[point] += amount
      this.size += amount
    }
  }

  amountOf (value, point, series) { return value ?? 0 }

  /** @returns {Generator<void, { rate: (number | null)[], total: number }>} */
  * figures () { return this.rates() }

  rates () {
    const { ms } = this.#times
    return { rate: Array.from(this.#added, (added, i) => this.#has[i] === 0 ? null : rounded(added / ms[i] * 1000)), total: rounded(this.size) }
  }
}

/** Also percentiles, which are of the merged buckets. */
class HistogramChart extends RateChart {
  #points
  #firsts // of which series each point was first
  #first = null
  whole = null // of the whole window

  constructor (window, times) {
    super(window, times)
    this.#points = new Array(window.length).fill(null)
    this.#firsts = new Array(window.length).fill(null)
  }

  amountOf (value, point, series) {
    if (value === null) return 0
    this.#first ??= series
    this.#firsts[point] ??= series
    const held = this.#points[point]
    if (held === null) this.#points[point] = value.part(1)
    else held.add(value, 1, this.#firsts[point] === series)
    if (this.whole === null) this.whole = value.part(1)
    else this.whole.add(value, 1, this.#first === series)
    let amount = 0
    for (let each = value; each !== null; each = each.next) amount += each.count
    return amount
  }

  /** Stops after each point, because it may have thousands of buckets. */
  * figures () {
    const figures = []
    for (const buckets of this.#points) {
      figures.push(buckets === null ? NO_FIGURES : buckets.figures(SHARES))
      yield
    }
    const of = (at) => figures.map(({ percentiles }) => rounded(percentiles[at]))
    return {
      ...this.rates(),
      p50: of(0),
      p95: of(1),
      p99: of(2),
      mean: this.#points.map((buckets) => buckets === null ? null : rounded(buckets.mean)),
      max: figures.map(({ highest }) => rounded(highest))
    }
  }
}

function instrumentJson (instrument) {
  const { name, unit, description, kind, monotonic, temporality, scope, series } = instrument
  const attributes = new Map()
  let attributesMore = false
  for (const each of series.values()) {
    for (const [key, value] of each.attributes) {
      const values = attributes.get(key) ?? new Set()
      if (values.size < VALUES_MAX && (attributes.has(key) || attributes.size < VALUES_MAX)) attributes.set(key, values.add(value))
      else if (!values.has(value)) attributesMore = true
    }
  }
  return {
    name,
    unit,
    description,
    kind,
    monotonic,
    temporality,
    scope,
    services: [...servicesOf(instrument)].sort(),
    series: series.size,
    attributes: Object.fromEntries([...attributes].map(([key, values]) => [key, [...values].sort()])),
    attributesMore,
    lastMs: lastMsOf(instrument)
  }
}

function servicesOf ({ series }) {
  return new Set(Array.from(series.values(), ({ origin }) => origin.service))
}

function lastMsOf ({ series }) {
  let lastMs = 0
  for (const each of series.values()) lastMs = Math.max(lastMs, each.lastMs)
  return lastMs
}

function isAlike (a, b) {
  return a.unit === b.unit && a.kind === b.kind && a.monotonic === b.monotonic
}

/**
 * Of each service, the metric of its requests: one, because a process that sends both counts each request in both, and buckets of two units
 * cannot be merged.
 */
function requestsOf (instruments, window) {
  const requests = new Map()
  const all = seriesOf(instruments.filter(isOfRequests).sort((a, b) => REQUESTS.indexOf(a.name) - REQUESTS.indexOf(b.name)))
  for (const series of [...all.filter((each) => !slotsOf(each, window).next().done), ...all]) {
    if (!requests.has(series.origin.service)) requests.set(series.origin.service, series.instrument)
  }
  return requests
}

function isOfRequests ({ name, kind, unit }) {
  return REQUESTS.includes(name) && MS_IN[unit] !== undefined && (kind === 'histogram' || kind === 'exponential_histogram')
}

function isFailure (attributes) {
  const status = attributes.get('http.response.status_code') ?? attributes.get('http.status_code')
  return attributes.has('error.type') || Number(status) >= 500
}

/** By name, scope, unit and kind. The scope and the unit of an instrument may be empty. @param {URLSearchParams} query @throws BadParameter */
function instrumentFilter (name, query) {
  const [scope, unit] = [query.get('scope'), query.get('unit')]
  const kind = oneOf(query, 'kind', METRIC_KINDS)
  return (each) => each.name === name && (scope === null || each.scope === scope) && (unit === null || each.unit === unit) && (kind === undefined || metricKindOf(each) === kind)
}

/** @returns {(attributes: Map<string, string>) => boolean} of `key:value`, or `key` alone: the attribute exists */
function attributeFilter (text) {
  const at = text.indexOf(':')
  if (at === -1) return (attributes) => attributes.has(text)
  const [key, value] = [text.slice(0, at), text.slice(at + 1)]
  return (attributes) => attributes.get(key) === value
}

function runtimeOf (instruments, only) {
  const byService = new Map()
  for (const { name, unit, series } of instruments) {
    for (const { origin: { service } } of series.values()) {
      if (only && service !== only) continue
      let units = byService.get(service)
      if (units === undefined) byService.set(service, units = new Map())
      units.set(name, unit)
    }
  }
  return [...byService].sort(([a], [b]) => a < b ? -1 : 1).flatMap(([service, units]) => RUNTIME.flatMap(([title, names]) => {
    const found = names.filter((name) => units.has(name))
    return found.length === 0 ? [] : [{ service, title, name: found[0], unit: units.get(found[0]), names: found.filter((name) => units.get(name) === units.get(found[0])) }]
  }))
}

function finite (number) {
  return Number.isFinite(number) ? number : null
}

// Six digits: more would only make the answer longer.
function rounded (number) {
  return Number.isFinite(number) ? Number(number.toPrecision(6)) : null
}

module.exports = { MetricStatistics }
