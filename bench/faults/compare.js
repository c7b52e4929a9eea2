'use strict'

// Slices → by how much those with a fault are slower than the bare ones beside them.

const { median, quantile } = require('../run/statistics')

const LIMIT_MS = 1

module.exports = { compare, verdict, LIMIT_MS }

// bare[i] and bare[i + 1] are the slices before and after slices[i]; each is a list of latencies in ms.
function compare (bare, slices) {
  return {
    over: spreadOf(differences(bare, slices, 0.99)),
    overP50: spreadOf(differences(bare, slices, 0.5)),
    calm: calmest(slices) - calmest(bare), // as bench:paired has it: what is left where nobody else disturbs
    bareP99: median(bare.map((latencies) => quantile(latencies, 0.99))),
    bareP50: median(bare.map((latencies) => quantile(latencies, 0.5)))
  }
}

// What speaks against a row, or ''.
function verdict ({ isStalled, over, wrong, hasHappened }) {
  if (wrong > 0) return `  WRONG: ${wrong} answers differ`
  if (!hasHappened) return '  INVALID: the fault did not happen'
  if (isStalled) return over.low > LIMIT_MS ? '' : '  INVALID: a loop that was held is not seen'
  if (over.low > LIMIT_MS) return `  MORE than ${LIMIT_MS} ms`
  return over.high > LIMIT_MS ? '  UNDECIDED: the machine is too restless' : ''
}

function differences (bare, slices, share) {
  return slices.map((latencies, i) => quantile(latencies, share) - (quantile(bare[i], share) + quantile(bare[i + 1], share)) / 2)
}

function calmest (slices) {
  return quantile(slices.map((latencies) => quantile(latencies, 0.99)), 0.1)
}

// low…high: where the median itself lies with 95 % confidence, by the order statistics of its sample; and the quartiles.
function spreadOf (values) {
  const sorted = values.toSorted((a, b) => a - b)
  const half = 1.96 * Math.sqrt(sorted.length) / 2
  const at = (index) => sorted[Math.min(sorted.length - 1, Math.max(0, index))]
  return {
    median: median(sorted),
    low: at(Math.floor(sorted.length / 2 - half)),
    high: at(Math.ceil(sorted.length / 2 + half)),
    quartiles: [quantile(sorted, 0.25), quantile(sorted, 0.75)]
  }
}
