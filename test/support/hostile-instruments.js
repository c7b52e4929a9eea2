'use strict'

// Instruments whose names, attributes and values Prometheus does not accept. One library with these could break the metrics of all others.

const ODD = ['', ' ', '\n', '\r', '\\', '"', '{x}', '}', '1', '5x', 'é', '𝒳', '\ud800', '\0', ':', '/', 's/s', '_', '__', 'a\nb', '# EOF', 'NaN',
  'constructor', 'By/constructor', '__proto__', 'toString/valueOf']
const EXTREMES = [5e-324, 1e-323, 1e-322, 0, 1, 1.7e308, Number.MAX_VALUE]
const RESERVED = { le: '1', __name__: 'x', otel_scope_name: 'y', 'otel.scope.version': 'z', __other: 1, plan: 'pro' }
const ONE_TO_PROMETHEUS = [{ code: 200 }, { code: '200' }, { 'a.b': 1, c: 2 }, { c: 2, a_b: 1 }, {}, { a: '' }, { 'a.b': 'x', a_b: 'y' }]
const COLLIDING = ['jobs', 'jobs.count', 'jobs_sum', 'jobs.bucket', 'jobs.created', 'target', 'target.info', 'hits.total', 'hits_created', 'a.b', 'a_b']

/** @param {{ getMeter (name: string, version?: string): Meter }} provider */
function recordHostile (provider) {
  const meter = provider.getMeter(ODD.join(), ODD.join())
  ODD.forEach((text, index) => {
    const options = { unit: text, description: text, advice: { explicitBucketBoundaries: [-1, 0, 1e21, Number.MAX_VALUE] } }
    const attributes = { [text]: text, a: [text, NaN, null, 1], b: NaN, c: -0, d: true }
    meter.createCounter(`c${index}_total`, options).add(Number.MAX_VALUE, attributes)
    meter.createGauge(`g${index}`, options).record(-1e-300, attributes)
    for (const value of EXTREMES) meter.createHistogram(`h${index}._-/.`, options).record(value, attributes)
  })
  for (const [low, value] of EXTREMES.entries()) {
    for (const [high, other] of EXTREMES.entries()) {
      const histogram = meter.createHistogram(`range.${low}.${high}`)
      histogram.record(value, RESERVED)
      histogram.record(other, RESERVED)
    }
  }
  meter.createHistogram('jobs').record(1, RESERVED)
  for (const attributes of [RESERVED, ...ONE_TO_PROMETHEUS]) meter.createCounter('hits').add(1, attributes)
  for (const name of COLLIDING) meter.createGauge(name).record(1, RESERVED)
  provider.getMeter('other').createGauge('a/b').record(1, RESERVED)
}

module.exports = { recordHostile, RESERVED, ONE_TO_PROMETHEUS }
