'use strict'

// Counts the work that a function causes in our code, as executed blocks. V8's coverage counts them, so a busy machine gives the same
// number as an idle one. Work inside native functions is not counted.

const v8 = require('node:v8')
const { Session } = require('node:inspector')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const LIB = `${pathToFileURL(join(__dirname, '..', '..', 'lib'))}/`

/** → { steps (fn), close () } */
function countSteps () {
  // Calls that an optimizing compiler has inlined are not counted, and the time of inlining depends on the machine.
  for (const flag of ['--no-opt', '--no-maglev']) v8.setFlagsFromString(flag)
  const session = new Session()
  session.connect()
  post(session, 'Profiler.enable')
  post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return {
    steps (fn) {
      post(session, 'Profiler.takePreciseCoverage') // and resets the counters
      fn()
      return sum(post(session, 'Profiler.takePreciseCoverage').result)
    },
    close () { session.disconnect() }
  }
}

function sum (scripts) {
  let steps = 0
  for (const { url, functions } of scripts) {
    if (!url.startsWith(LIB)) continue
    for (const { ranges } of functions) for (const { count } of ranges) steps += count
  }
  return steps
}

// The session is in this thread, so its answer arrives before post returns.
function post (session, method, params) {
  let answer
  session.post(method, params, (error, result) => {
    if (error !== null) throw error
    answer = result
  })
  return answer
}

module.exports = { countSteps }
