'use strict'

// On a terminal, updates one line; elsewhere, prints one line per step. Estimates the time left from the pace so far.

module.exports = startProgress

function startProgress (stepsTotal) {
  const started = Date.now()
  let steps = 0
  return function progress (sentence) {
    const left = steps === 0 ? '' : ` (${minutes((Date.now() - started) / steps * (stepsTotal - steps))} left)`
    steps++
    const line = `[${steps}/${stepsTotal}] ${sentence}${left}`
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${line}` : `${line}\n`)
  }
}

function minutes (milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000))
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
