'use strict'

// How much work a function makes our code do, in executed blocks: counted by V8's own coverage, so it is the same
// number on a busy machine and on an idle one. Regular expressions count by how often they go back, which is what makes them
// slow; what other native functions do inside of one call is not in it.

const v8 = require('node:v8')
const { Session } = require('node:inspector')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const LIB = `${pathToFileURL(join(__dirname, '..', '..', 'lib'))}/`

/** → { steps (fn), close () } */
function countSteps () {
  // A call that an optimising compiler has inlined is not counted, and when it does so depends on the machine.
  // And an expression takes other steps in machine code than in bytecode.
  for (const flag of ['--no-opt', '--no-maglev', '--no-regexp-tier-up']) v8.setFlagsFromString(flag)
  const session = new Session()
  session.connect()
  post(session, 'Profiler.enable')
  post(session, 'Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return {
    steps (fn) {
      post(session, 'Profiler.takePreciseCoverage') // and begins anew
      const stepsBack = countStepsBack(fn)
      return sum(post(session, 'Profiler.takePreciseCoverage').result) + stepsBack
    },
    close () { session.disconnect() }
  }
}

// V8 can give up an expression after so many steps back: the least number with which it comes to an end is how many it took.
const STEPS_BACK_MAX = 2 ** 30
v8.setFlagsFromString('--allow-natives-syntax')
// eslint-disable-next-line no-new-func
const limited = new Function('source', 'flags', 'stepsBack', 'return %NewRegExpWithBacktrackLimit(source, flags, stepsBack)')
v8.setFlagsFromString('--no-allow-natives-syntax')

/* eslint-disable no-extend-native */
function countStepsBack (fn) {
  const { exec } = RegExp.prototype
  let steps = 0
  RegExp.prototype.exec = function countingExec (text) {
    RegExp.prototype.exec = exec
    if (!this.unicode) steps += stepsBack(this, `${text}`) // V8's function takes no `u`
    const found = this.exec(text)
    RegExp.prototype.exec = countingExec
    return found
  }
  try {
    fn()
  } finally {
    RegExp.prototype.exec = exec
  }
  return steps
}
/* eslint-enable no-extend-native */

// V8 counts no steps back in a loop over one character: with something empty behind the character it is an ordinary loop.
const PIECE = /(\[(?:[^\]\\]|\\.)*\]|\\x..|\\u....|\\.|[^()|*+?{}[\]\\^$])([*+]?)/g

function stepsBack ({ source, flags, lastIndex }, text) {
  const counted = source.replace(PIECE, (piece, one, loop) => loop === '' ? piece : `(?:${one}(?=))${loop}`)
  // What is not found anywhere is null as well, so nothing is found then. With `y` it is not looked for anywhere else.
  const whole = flags.includes('y') || counted.startsWith('^') ? `(?:${counted})|` : `[^]*?(?:${counted})|`
  const isEnough = (limit) => {
    const expression = limited(whole, flags.includes('y') ? flags : `${flags}y`, limit)
    expression.lastIndex = lastIndex
    return expression.exec(text) !== null
  }
  let enough = 1
  while (!isEnough(enough) && enough < STEPS_BACK_MAX) enough *= 2
  for (let part = enough / 4; part >= enough / 32 && part >= 1; part /= 2) if (isEnough(enough - part)) enough -= part
  return enough
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
