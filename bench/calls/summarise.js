'use strict'

// Slices → rows. `over` is the median of the differences between neighbours, which a longer disturbance does not bend, and
// where that median lies; `overP10` compares tenth percentiles: what is left where nobody disturbs.

const { medianInterval, quantile } = require('../run/statistics')

module.exports = function summarise (slices, workloads) {
  const rows = []
  for (const { name: workload } of workloads) {
    for (const tracer of new Set(slices.map((slice) => slice.tracer))) {
      const of = (wanted) => slices.filter((slice) => slice.workload === workload && slice.tracer === tracer && slice.traced === wanted).map(({ micros }) => micros)
      const [untraced, traced] = [of(false), of(true)]
      if (traced.length === 0) continue
      rows.push({
        workload,
        tracer,
        untraced: quantile(untraced, 0.1),
        traced: quantile(traced, 0.1),
        overP10: quantile(traced, 0.1) - quantile(untraced, 0.1),
        over: medianInterval(traced.map((micros, i) => micros - untraced[i]))
      })
    }
  }
  const served = slices.filter(({ workload, traced, servedMicros }) => workload === 'undici.request' && !traced && servedMicros !== null)
  return { rows, bareFastifyMicros: quantile(served.map(({ servedMicros }) => servedMicros), 0.1) }
}
