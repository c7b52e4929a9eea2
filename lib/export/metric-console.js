'use strict'

// Metrics for people: a small table at each interval, at a flush and at the end.
//
//   http.server.request.duration (s)                                    count      mean       max
//     GET /users/:id 200                                                   12    0.0041    0.0123

const { snapshot } = require('../metrics/snapshot')

const LABEL_WIDTH = 64
const COLUMN_WIDTH = 11

class ConsoleMetrics {
  #registry
  #write

  constructor (registry, write) {
    this.#registry = registry
    this.#write = write
  }

  hold () {}
  abort () {}
  close () {}

  async send () {
    const metrics = snapshot(this.#registry.scopes())
    if (metrics.length > 0) this.#write(metrics.map(drawMetric).join('\n'))
    return { retryMs: -1, isAsked: false }
  }
}

function drawMetric ({ name, unit, kind, points }) {
  const isHistogram = kind.endsWith('istogram')
  const columns = isHistogram ? ['count', 'mean', 'max'] : ['value']
  const title = unit === '' ? name : `${name} (${unit})`
  const rows = points.map((point) => row(`  ${label(point.attributes)}`, isHistogram
    ? [point.count, point.sum / point.count, point.max]
    : [point.value]))
  return [row(title, columns), ...rows].join('\n')
}

/** The values, with those that everybody knows in the order of an HTTP log. */
function label (attributes) {
  const { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status, ...others } = attributes
  const known = [method, route, status].filter((value) => value !== undefined)
  const rest = Object.entries(others).filter(([key]) => key !== 'url.scheme' && key !== 'network.protocol.version').map(([key, value]) => `${key}=${value}`)
  return [...known, ...rest].join(' ')
}

function row (title, cells) {
  const shown = title.length > LABEL_WIDTH ? `${title.slice(0, LABEL_WIDTH - 1)}…` : title.padEnd(LABEL_WIDTH)
  return `${shown}${cells.map((cell) => (typeof cell === 'number' ? number(cell) : cell).padStart(COLUMN_WIDTH)).join('')}`
}

function number (value) {
  if (!Number.isFinite(value)) return '-'
  return Number.isInteger(value) ? String(value) : value.toPrecision(4)
}

module.exports = { ConsoleMetrics }
