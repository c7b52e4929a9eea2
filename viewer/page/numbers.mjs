/** @param {Iterable<number>} values */
export function sum (values) {
  let total = 0
  for (const each of values) total += each
  return total
}

/** The value, or the nearest one between these. */
export function within (low, value, high) {
  return Math.max(low, Math.min(high, value))
}
