'use strict'

const perfHooks = require('node:perf_hooks')

const LOOK_EVERY_MS = 10

module.exports = watchLoop

// here: false where the work is done by other processes
// → { start, stop: () => the 99th percentile of the event loop's delay since start in ms, or null where that cannot be told }
function watchLoop ({ here }) {
  const histogram = here ? openHistogram() : null
  if (!histogram) return { start () {}, stop: () => null }
  return {
    start () {
      histogram.reset()
      histogram.enable()
    },
    // The histogram holds the time between two looks at the loop, so the interval is taken off again.
    stop () {
      histogram.disable()
      return Math.max(0, histogram.percentile(99) / 1e6 - LOOK_EVERY_MS)
    }
  }
}

function openHistogram () {
  try {
    return perfHooks.monitorEventLoopDelay({ resolution: LOOK_EVERY_MS })
  } catch {
    return null // a runtime that is not Node
  }
}
