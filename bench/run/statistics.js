'use strict'

module.exports = { median, spread, quantile, medianInterval }

function median (values) {
  const sorted = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

// → { median, min, max } of the finite ones; null where there is none
function spread (values) {
  const finite = values.filter((value) => Number.isFinite(value))
  if (finite.length === 0) return null
  return { median: median(finite), min: Math.min(...finite), max: Math.max(...finite) }
}

// The value below which `share` of all lie.
function quantile (values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]
}

// low…high: where the median itself lies with 95 % confidence, by the order statistics of its sample; and the quartiles.
function medianInterval (values) {
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
