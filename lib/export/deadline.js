'use strict'

// Waits for somebody else's promise, for so long and no longer. Never rejects.

const { setTimeout, clearTimeout } = require('../runtime/timers')

/**
 * @param {() => unknown} start may throw, return nothing, or a promise that never settles
 * @param {number} timeoutMs
 * @returns {Promise<undefined | Error>} what went wrong; 'in time' is undefined
 */
function settleWithin (start, timeoutMs) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(new Error(`not done within ${timeoutMs} ms`)), timeoutMs)
    const finish = (error) => {
      clearTimeout(timer)
      resolve(error)
    }
    try {
      Promise.resolve(start()).then(() => finish(undefined), (error) => finish(error ?? new Error('rejected')))
    } catch (error) {
      finish(error ?? new Error('thrown'))
    }
  })
}

module.exports = { settleWithin }
