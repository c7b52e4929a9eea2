'use strict'

// Sends a million one-span traces to a viewer with the default memory limit, and many series and log lines to another one, which holds all of them.

const { startCommand } = require('./process')
const { bodies } = require('./spans')
const { sender } = require('./send')
const { sendSeries, sendLines, SERIES, LINES, MAX_BYTES } = require('./load')

const TRACES = 1_000_000
const BATCH = 2000
const SLOTS_OF_AN_HOUR = 360

async function measureMemory () {
  const viewer = await startCommand([])
  const rssBefore = viewer.rssBytes()
  const { send, end } = sender(viewer.url)
  const body = bodies(BATCH, 1)
  for (let i = 0; i < TRACES / BATCH; i++) if (await send(body(i)) !== 200) throw new Error('a batch was rejected')
  const stats = await (await fetch(`${viewer.url}/api/stats`)).json()
  const result = { traces: TRACES, maxBytes: stats.maxBytes, heldBytes: stats.bytes, held: stats.traces, evicted: stats.evicted.traces, rssBefore, rssAfter: viewer.rssBytes(), rssPeak: viewer.peakRssBytes() }
  end()
  await viewer.end()
  if (result.held + result.evicted !== TRACES || result.heldBytes > result.maxBytes) throw new Error(JSON.stringify(result))
  return { ...result, many: await measureMany() }
}

async function measureMany () {
  const viewer = await startCommand(['--max-bytes', MAX_BYTES])
  const rssBefore = viewer.rssBytes()
  await sendSeries(viewer.url, SLOTS_OF_AN_HOUR)
  await sendLines(viewer.url)
  const { maxBytes, bytes, lines, metrics } = await (await fetch(`${viewer.url}/api/stats`)).json()
  const result = { series: metrics.series, points: metrics.points, lines: lines.held, limit: MAX_BYTES, maxBytes, heldBytes: bytes, rssBefore, rssAfter: viewer.rssBytes(), rssPeak: viewer.peakRssBytes() }
  await viewer.end()
  if (result.series !== SERIES || result.lines !== LINES || bytes > maxBytes) throw new Error(JSON.stringify(result))
  return result
}

module.exports = { measureMemory }
