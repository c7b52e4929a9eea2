'use strict'

// For error messages only: which of the known names did somebody mean?

module.exports = { nearestName }

// Longer names are no typing errors, and the distance is quadratic.
const NAME_MAX = 64

function nearestName (name, known) {
  const wanted = name.slice(0, NAME_MAX).toLowerCase()
  let nearest = known[0]
  let least = Infinity
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      nearest = candidate
    }
  }
  return nearest
}

// Levenshtein's distance, one row at a time.
function editDistance (a, b) {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, previous[j] + 1, row[j - 1] + 1))
    }
    previous = row
  }
  return previous[b.length]
}
