'use strict'

// What functions of the application answer: it may be anything.

/** The answer of a function that is not to be async. Throws where it is a promise, whose rejection would end the process. */
function atOnce (answer) {
  if (answer === null || typeof answer !== 'object' || typeof answer.then !== 'function') return answer
  answer.then(undefined, () => {})
  throw new TypeError('it must return its answer, not a promise')
}

module.exports = { atOnce }
