'use strict'

// Measures how long it takes to get the rows of a trace with 10,000 spans, and how large they are. Drawing them is measured in the
// browser.

const { startCommand, median } = require('./process')
const { bodies } = require('./spans')
const { sender } = require('./send')

const SPANS = 10_000
const ROUNDS = 15

async function measureLargeTrace () {
  const viewer = await startCommand([])
  const { send, end } = sender(viewer.url)
  await send(bodies(1, SPANS)(1))
  const times = []
  let bytes = 0
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now()
    const text = await (await fetch(`${viewer.url}/api/traces/last/rows`)).text()
    times.push(performance.now() - startedAt)
    bytes = Buffer.byteLength(text)
    if (JSON.parse(text).rows.length !== SPANS) throw new Error('rows are missing')
  }
  end()
  await viewer.end()
  return { spans: SPANS, rowsMs: median(times), firstMs: times[0], bytes }
}

module.exports = { measureLargeTrace }
