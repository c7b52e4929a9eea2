'use strict'

// Calculates how much slower the slices with a fault are than the bare slices next to them.

const { median, medianInterval, quantile } = require('../run/statistics')

const LIMIT_MS = 1

module.exports = { compare, verdict }

// bare[i] and bare[i + 1] are the slices before and after slices[i]. Each slice is a list of latencies in ms.
function compare (bare, slices) {
  return {
    over: medianInterval(differences(bare, slices, 0.99)),
    overP50: medianInterval(differences(bare, slices, 0.5)),
    calm: calmest(slices) - calmest(bare), // what is left when nothing else disturbs the run
    bareP99: median(bare.map((latencies) => quantile(latencies, 0.99))),
    bareP50: median(bare.map((latencies) => quantile(latencies, 0.5)))
  }
}

// The reason why a row is bad, or ''.
function verdict ({ isStalled, over, wrong, hasHappened }) {
  if (wrong > 0) return `  WRONG: ${wrong} responses differ`
  if (!hasHappened) return '  INVALID: the fault did not happen'
  if (isStalled) return over.low > LIMIT_MS ? '' : '  INVALID: the blocked loop was not detected'
  if (over.low > LIMIT_MS) return `  MORE than ${LIMIT_MS} ms`
  return over.high > LIMIT_MS ? '  UNDECIDED: the machine is too noisy' : ''
}

function differences (bare, slices, share) {
  return slices.map((latencies, i) => quantile(latencies, share) - (quantile(bare[i], share) + quantile(bare[i + 1], share)) / 2)
}

function calmest (slices) {
  return quantile(slices.map((latencies) => quantile(latencies, 0.99)), 0.1)
}
