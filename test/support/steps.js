'use strict'

// How much work a function makes our code do, in executed blocks: counted by V8's own coverage, so it is the same
// number on a busy machine and on an idle one. What native functions do inside of one call is not in it.

const v8 = require('node:v8')
const { Session } = require('node:inspector')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const LIB = `${pathToFileURL(join(__dirname, '..', '..', 'lib'))}/`

/** → { steps (fn), close () } */
function countSteps () {
  // A call that an optimising compiler has inlined is not counted, and when it does so depends on the machine.
  for (const flag of ['--no-opt', '--no-maglev']) v8.setFlagsFromString(flag)
  const session = new Session()
  session.connect()
  post(session, 'Profiler.enable')
  post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return {
    steps (fn) {
      post(session, 'Profiler.takePreciseCoverage') // and begins anew
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

// The session is in this thread: its answers come before post returns.
function post (session, method, params) {
  let answer
  session.post(method, params, (error, result) => {
    if (error !== null) throw error
    answer = result
  })
  return answer
}

module.exports = { countSteps }
