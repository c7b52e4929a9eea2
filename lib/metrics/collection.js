'use strict'

// One collection of all metrics, as OTLP's bytes or JSON (encoder.js). It is written in steps, so that two thousand
// series do not hold the event loop, and comes out in batches, each a message of its own. It is cold code: once a minute.

const { toHrTime } = require('../runtime/timers')
const { takeDelta } = require('./series')

const POINTS_PER_STEP = 64 // some 0.5 ms of the event loop

/** One message's worth of points, by scope and metric, and the deltas among them. */
class Batch {
  #scopes = [] // { scope, metrics: [{ metric, isDelta, head, points }] }

  length = 0
  points = 0
  deltas = []
  body = null // the message, once it is complete

  add (scope, metric, isDelta, point, delta, encoder) {
    if (this.#scopes.at(-1)?.scope !== scope) this.#scopes.push({ scope, metrics: [] })
    const { metrics } = this.#scopes.at(-1)
    if (metrics.at(-1)?.metric !== metric) {
      const head = encoder.head(metric)
      metrics.push({ metric, isDelta, head, points: [] })
      this.length += head.length
    }
    metrics.at(-1).points.push(point)
    this.length += point.length
    this.points++
    if (delta !== null) this.deltas.push(delta)
  }

  complete (encoder) {
    this.body = encoder.body(this.#scopes)
    this.#scopes = []
    return this
  }

  delivered () { for (const { series, state } of this.deltas) series.delivered = state }

  /** Gives minimum and maximum back to the intervals, which go on. */
  failed () {
    for (const { series, point } of this.deltas) series.resetExtremes(Math.min(series.min, point.min), Math.max(series.max, point.max))
  }
}

/**
 * Writes the metrics of all scopes that have points. Yields null where the caller should let others run, and batches.
 * @param {Iterable<{ scope: Scope, metrics: Metric[] }>} scopes
 * @param {number} nowMs monotonic, the time of all points
 * @param {number} sinceMs exemplars that are not newer are left out: they were delivered
 * @param {import('./encoder').MetricEncoder} encoder writes the head of a metric, a point (`point` is the series, or its difference;
 *   `times` are in nanoseconds since the epoch) and, from both, the body of a batch
 * @returns {Generator<Batch | null>}
 */
function * collect (scopes, nowMs, sinceMs, encoder) {
  const now = nanosOf(nowMs)
  let batch = new Batch()
  let untilPause = POINTS_PER_STEP
  for (const { scope, metrics } of scopes) {
    for (const metric of metrics) {
      const isDelta = metric.isDelta && encoder.takesDeltas
      for (const series of metric.list.slice()) {
        const delta = isDelta ? takeDelta(series, nowMs) : null
        if (isDelta ? delta === null : series.count === 0) continue
        const start = isDelta ? nanosOf(metric.intervalStart(series)) : startOf(series, now)
        const point = encoder.point(metric, series, isDelta ? delta.point : series, { start, now, sinceMs })
        if (batch.points > 0 && batch.length + point.length > encoder.batchBytes) {
          yield batch.complete(encoder)
          batch = new Batch()
        }
        batch.add(scope, metric, isDelta, point, delta, encoder)
        if (--untilPause > 0) continue
        untilPause = POINTS_PER_STEP
        yield null
      }
    }
  }
  if (batch.points > 0) yield batch.complete(encoder)
}

/** The start of a series, made once: a step of the wall clock is no restart, but for one that puts the start into the future. */
function startOf (series, now) {
  if (series.startNanos === null || series.startNanos > now) series.startNanos = nanosOf(series.startMs)
  return series.startNanos
}

/** Monotonic milliseconds as nanoseconds since the epoch. */
function nanosOf (ms) {
  const [seconds, nanos] = toHrTime(ms)
  return BigInt(seconds) * 1000000000n + BigInt(nanos)
}

module.exports = { collect, nanosOf, startOf }
