'use strict'

const TICK_MS = 5

/**
 * `perSecond` spans for `ms`, written as requests would: a few at a time, between other work. It counts ticks and not the time: where
 * the process is held back, so are its requests, and no more of them come at once afterwards.
 */
function load (write, perSecond, ms, bytes = 350) {
  const ticks = Math.ceil(ms / TICK_MS)
  let [tick, done] = [0, 0]
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.floor(++tick * perSecond * TICK_MS / 1000)
      write(due - done, bytes)
      done = due
      if (tick < ticks) return
      clearInterval(timer)
      resolve()
    }, TICK_MS)
  })
}

module.exports = { load }
