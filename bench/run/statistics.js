'use strict'

module.exports = { median, spread, quantile }

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
