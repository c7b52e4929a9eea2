'use strict'

// Metrics as OTLP JSON: those of a shop and its runtime, every 10 seconds.

const STEP_MS = 10_000
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

module.exports = { sendMetrics, shopMetrics, histogram, sum, gauge, STEP_MS }

async function sendMetrics (url, metrics, service = 'shop', scope = 'shop') {
  const body = JSON.stringify({ resourceMetrics: [{ resource: { attributes: keyValues({ 'service.name': service }) }, scopeMetrics: [{ scope: { name: scope }, metrics }] }] })
  const { status } = await fetch(`${url}/v1/metrics`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  if (status !== 200) throw new Error(`the viewer answered ${status}`)
}

/** Deltas. @param {{ at, attributes?, counts: number[], exemplars?: { at, value, traceId, spanId }[] }[]} points counts: one for each of BOUNDS, and one for more */
function histogram (name, unit, points, description) {
  return {
    name,
    unit,
    description,
    histogram: {
      aggregationTemporality: 1,
      dataPoints: points.map(({ counts, exemplars = [], ...point }) => ({
        ...timed(point),
        count: String(counts.reduce((total, each) => total + each, 0)),
        sum: counts.reduce((total, each, index) => total + each * (BOUNDS[index] ?? 5), 0),
        bucketCounts: counts.map(String),
        explicitBounds: BOUNDS,
        exemplars: exemplars.map(({ at, value, traceId, spanId }) => ({ timeUnixNano: nano(at), asDouble: value, traceId, spanId }))
      }))
    }
  }
}

/** A counter of deltas. @param {{ at, attributes?, value }[]} points */
function sum (name, unit, points, description) {
  return { name, unit, description, sum: { aggregationTemporality: 1, isMonotonic: true, dataPoints: points.map(({ value, ...point }) => ({ ...timed(point), asDouble: value })) } }
}

/** @param {{ at, attributes?, value }[]} points */
function gauge (name, unit, points, description) {
  return { name, unit, description, gauge: { dataPoints: points.map(({ value, ...point }) => ({ ...timed(point), asDouble: value })) } }
}

/** The metrics of a shop until `endMs`. @param {{ at, value, traceId, spanId }[]} [exemplars] of its slowest route */
function shopMetrics ({ endMs = Date.now(), steps = 120, exemplars = [] } = {}) {
  const times = Array.from({ length: steps }, (_, index) => endMs - (steps - index) * STEP_MS)
  const routes = [['GET', '/products', 1, 0], ['POST', '/orders', 3, 1], ['GET', '/orders/:id/invoice', 5, 0]]
  const wave = (index, of) => 1 + Math.sin(index / 9 + of) / 2
  const requests = times.flatMap((at, index) => routes.flatMap(([method, route, size, errors], of) => [[200, 40], ...errors ? [[500, 2]] : []].map(([status, count], nth) => ({
    at,
    attributes: { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status },
    counts: [...BOUNDS.keys(), BOUNDS.length].map((bucket) => Math.round(Math.max(0, count * wave(index, of) * (1 - Math.abs(bucket - size) / 3)))),
    exemplars: nth === 0 && of === 1 ? exemplars.filter((each) => each.at >= at - STEP_MS && each.at < at) : []
  }))))
  const each = (value, attributes) => times.map((at, index) => ({ at, value: value * wave(index, 1), attributes }))
  return [
    histogram('http.server.request.duration', 's', requests, 'Duration of HTTP server requests.'),
    ...[['p50', 0.011], ['p90', 0.016], ['p99', 0.03]].map(([name, value]) => gauge(`nodejs.eventloop.delay.${name}`, 's', each(value))),
    gauge('nodejs.eventloop.utilization', '1', each(0.3)),
    histogram('v8js.gc.duration', 's', times.map((at) => ({ at, attributes: { 'v8js.gc.type': 'minor' }, counts: [9, 3, 1, 0, 0, 0, 0, 0, 0, 0] }))),
    gauge('v8js.memory.heap.used', 'By', each(4.2e7)),
    sum('process.cpu.time', 's', [...each(2, { 'cpu.mode': 'user' }), ...each(0.6, { 'cpu.mode': 'system' })]),
    gauge('process.memory.usage', 'By', each(1.1e8)),
    sum('shop.orders', '{order}', ['acme', 'globex', 'initech'].flatMap((tenant, index) => each(20 * (index + 1), { tenant, currency: 'EUR' })), 'Orders that were paid.'),
    gauge('shop.queue.depth', '{job}', each(7), 'Jobs that wait.')
  ]
}

function timed ({ at, attributes = {} }) {
  return { startTimeUnixNano: nano(at - STEP_MS), timeUnixNano: nano(at), attributes: keyValues(attributes) }
}

function nano (ms) {
  return `${Math.round(ms)}000000`
}

function keyValues (attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } }))
}
