'use strict'

const TICK_MS = 5

/**
 * Writes `perSecond` spans for `ms`, as requests would: a few at a time, between other work. It counts ticks instead of time. If the
 * process is delayed, it does not write the missed spans in a burst afterwards, as real requests are delayed, too.
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
