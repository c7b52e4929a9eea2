'use strict'

// Measures how many spans per second one core receives while a page follows, and how many are lost.

const { readEvents } = require('../../viewer/commands/event-stream')
const { startCommand } = require('./process')
const { open } = require('./seen')
const { bodies } = require('./spans')
const { sender } = require('./send')

const BATCH_TRACES = 256
const WARM_UP = 100
const BATCHES = 800

async function measureIngest () {
  const viewer = await startCommand([])
  const page = await open(`${viewer.url}/api/events`)
  let seen = 0
  const following = (async () => { for await (const { event, data } of readEvents(page)) if (event === 'traces') seen += data.traces.length })()
  following.catch(() => {})
  const { send, end } = sender(viewer.url)
  const body = bodies(BATCH_TRACES)
  for (let i = 0; i < WARM_UP; i++) await send(body(i))
  const cpuBefore = viewer.cpuSeconds()
  const startedAt = performance.now()
  for (let i = 0; i < BATCHES; i++) {
    if (await send(body(WARM_UP + i)) !== 200) throw new Error('a batch was rejected')
  }
  const seconds = (performance.now() - startedAt) / 1000
  const cpuSeconds = viewer.cpuSeconds() - cpuBefore
  const stats = await (await fetch(`${viewer.url}/api/stats`)).json()
  end()
  await viewer.end()
  const spans = BATCHES * BATCH_TRACES * 2
  const sent = spans + WARM_UP * BATCH_TRACES * 2
  if (stats.received.spans !== sent || stats.spans + stats.dropped.spans !== sent) throw new Error(`${sent} spans were sent, ${JSON.stringify(stats)}`)
  if (seen === 0) throw new Error('the page received nothing')
  return { spans, bytesPerSpan: body(0).length / BATCH_TRACES / 2, perCpuSecond: spans / cpuSeconds, perSecond: spans / seconds, evicted: stats.dropped.reasons.evicted, uncounted: 0 }
}

module.exports = { measureIngest }
