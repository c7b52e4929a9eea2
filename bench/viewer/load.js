'use strict'

// Many series and many log lines, as OTLP JSON.

const { gauge, sendMetrics, STEP_MS } = require('../../test/browser/support/otlp-metrics')
const { sendLogs } = require('../../test/browser/support/otlp-logs')

const SERIES = 2000
const SERIES_OF_AN_INSTRUMENT = 100
const INSTRUMENTS = Array.from({ length: SERIES / SERIES_OF_AN_INSTRUMENT }, (_, index) => `bench.value.${index}`)
const LINES = 100_000
const LINES_OF_A_REQUEST = 1000
const MAX_BYTES = '512mb' // lines without a trace may use an eighth

/** A value of each series for each of the last `slots` steps. */
async function sendSeries (url, slots) {
  const atMs = Date.now()
  const points = Array.from({ length: SERIES_OF_AN_INSTRUMENT * slots }, (_, index) => ({ at: atMs - (slots - 1 - Math.floor(index / SERIES_OF_AN_INSTRUMENT)) * STEP_MS, value: 1e6 * (1 + Math.random()), attributes: { nth: index % SERIES_OF_AN_INSTRUMENT } }))
  for (const name of INSTRUMENTS) await sendMetrics(url, [gauge(name, 'By', points)])
}

async function sendLines (url, count = LINES) {
  for (let sent = 0; sent < count; sent += LINES_OF_A_REQUEST) {
    const lines = Array.from({ length: Math.min(LINES_OF_A_REQUEST, count - sent) }, (_, index) => ({ at: Date.now(), text: `order ${sent + index} was paid`, attributes: { tenant: `tenant-${index % 50}` } }))
    await sendLogs(url, ...lines)
  }
}

module.exports = { sendSeries, sendLines, INSTRUMENTS, SERIES, LINES, MAX_BYTES }
