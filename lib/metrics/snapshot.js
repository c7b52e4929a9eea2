'use strict'

// Metrics as plain objects, for tests and for the console: what was recorded since the start.

const { toObject } = require('../span/attributes')
const { hex } = require('../context/ids')

/**
 * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
 * @returns {Array<{ name, description, unit, kind, scope, points }>} those that have points
 */
function snapshot (scopes) {
  const found = []
  for (const { scope, metrics } of scopes) {
    for (const metric of metrics) {
      const points = metric.list.map((series) => pointOf(metric, series)).filter((point) => point !== null)
      if (points.length === 0) continue
      found.push({
        name: metric.name,
        description: metric.description,
        unit: metric.unit,
        kind: metric.kind,
        isMonotonic: metric.isMonotonic,
        scope: { name: scope.name, version: scope.version ?? '' },
        points
      })
    }
  }
  return found
}

function pointOf (metric, series) {
  const attributes = toObject(series.attributes)
  const exemplars = series.exemplars === null ? [] : series.exemplars.filter((exemplar) => exemplar !== null).map(readable)
  if (!metric.kind.endsWith('istogram')) return { attributes, value: series.value, exemplars }
  const { count, sum } = series
  if (count === 0) return null
  const point = { attributes, count, sum, min: series.min, max: series.max, exemplars }
  if (metric.kind === 'histogram') {
    return { ...point, bounds: Array.from(metric.bounds.subarray(0, -1)), counts: series.counts() }
  }
  return { ...point, scale: series.scale, zeroCount: series.zeroCount, ...series.buckets() }
}

function readable ({ value, t0, t1, t2, t3, s0, s1 }) {
  return { value, traceId: hex(t0) + hex(t1) + hex(t2) + hex(t3), spanId: hex(s0) + hex(s1) }
}

module.exports = { snapshot }
