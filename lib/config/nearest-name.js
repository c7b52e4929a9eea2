'use strict'

// Which of the known names did somebody mean? Asked for names that are not known only.

module.exports = { nearestName }

// Longer names are no typing errors, and the distance is quadratic.
const NAME_MAX = 64

// A typing error changes a letter or two; in a short name two would make another word of it (`port` is not `spans`).
const LETTERS_PER_ERROR = 3
const ERRORS_MAX = 2
// `ignorePaths`, `service`: longer or shorter than ours, and surely meant. Below, too many words begin alike (`keepAlive`).
const COMMON_START_MIN = 5

/** @returns {string | undefined} the known name that `name` resembles, where it resembles one */
function nearestName (name, known) {
  const wanted = name.slice(0, NAME_MAX).toLowerCase()
  let nearest
  let least = Math.min(ERRORS_MAX, Math.floor(wanted.length / LETTERS_PER_ERROR)) + 1
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < least) {
      least = distance
      nearest = candidate
    }
  }
  return nearest ?? known.find((candidate) => startAlike(wanted, candidate.toLowerCase()))
}

function startAlike (a, b) {
  return Math.min(a.length, b.length) >= COMMON_START_MIN && (a.startsWith(b) || b.startsWith(a))
}

// Levenshtein's distance, where two letters in the wrong order are one error, row by row.
function editDistance (a, b) {
  let beforePrevious = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? beforePrevious[j - 2] + 1 : Infinity
      row.push(Math.min(replaced, swapped, previous[j] + 1, row[j - 1] + 1))
    }
    beforePrevious = previous
    previous = row
  }
  return previous[b.length]
}
