'use strict'

module.exports = { median, spread, quantile, medianInterval, mean95 }

// Student's t for 95 %, by degrees of freedom; beyond the table the last value is used, which is slightly too high.
const STUDENT_T = [Infinity, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]

function median (values) {
  const sorted = values.filter((value) => Number.isFinite(value)).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

// → { median, min, max } of the finite values; null if there are none
function spread (values) {
  const finite = values.filter((value) => Number.isFinite(value))
  if (finite.length === 0) return null
  return { median: median(finite), min: Math.min(...finite), max: Math.max(...finite) }
}

// The value below which `share` of all values lie.
function quantile (values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]
}

// low…high: the 95 % confidence interval of the median, from order statistics. Also returns the quartiles.
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

// The median, and half the width of the 95 % confidence interval of the mean, assuming a normal distribution; Infinity for one value.
function mean95 (values) {
  const n = values.length
  const mean = values.reduce((sum, value) => sum + value, 0) / n
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, n - 1)
  const t = STUDENT_T[Math.min(n - 1, STUDENT_T.length - 1)]
  return { median: median(values), halfWidth: n === 1 ? Infinity : t * Math.sqrt(variance / n) }
}
