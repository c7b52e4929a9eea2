'use strict'

/** `perSecond` spans for `ms`, written as requests would: a few at a time, between other work. */
function load (write, perSecond, ms, bytes = 350) {
  const startedAt = performance.now()
  let done = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsed = Math.min(performance.now() - startedAt, ms)
      const due = Math.floor(elapsed * perSecond / 1000)
      write(due - done, bytes)
      done = due
      if (elapsed < ms) return
      clearInterval(timer)
      resolve()
    }, 5)
  })
}

module.exports = { load }
