'use strict'

// GET /api/events: spans are shown as they arrive.

const http = require('node:http')
const { PassThrough } = require('node:stream')
const { test } = require('tap')
const { startViewer, spansOf, traceId } = require('./support')
const { encodeRequest } = require('../support/otlp-encode')
const { readEvents } = require('../../viewer/commands/event-stream')
const { Events } = require('../../viewer/http/events')
const { TraceStore } = require('../../viewer/store/trace-store')

/** @returns {Promise<{ next (event?): Promise<object>, response }>} next: the data of the next event, or of the next of this name. None is skipped for good */
async function follow (t, port, query = '') {
  const response = await new Promise((resolve, reject) => http.get({ port, host: '127.0.0.1', path: `/api/events${query}`, agent: false }, resolve).on('error', reject))
  t.teardown(() => response.destroy())
  const events = readEvents(response)
  const came = []
  return {
    response,
    async next (wanted) {
      for (;;) {
        const at = came.findIndex(({ event }) => wanted === undefined || event === wanted)
        if (at !== -1) return came.splice(at, 1)[0].data
        const { value, done } = await events.next()
        if (done) throw new Error('the stream has ended')
        came.push(value)
      }
    }
  }
}

test('a trace is sent when it arrives and when it grows', async (t) => {
  const { port, send } = await startViewer(t)
  const events = await follow(t, port)
  t.match((await events.next()).stats, { traces: 0, clients: 1 }, 'hello first')
  await send([{ trace: 1, id: 2, parent: 1, name: 'child' }])
  t.match(await events.next('traces'), { traces: [{ id: traceId(1), name: 'child', spans: 1, root: false, orphans: 1 }], more: 0, oldest: 1, total: 1 })
  await send([{ trace: 1, id: 1, name: 'root' }])
  t.match(await events.next('traces'), { traces: [{ id: traceId(1), name: 'root', spans: 2, root: true, orphans: 0 }] })
  let stats // once a second, perhaps between the two spans, and perhaps before the trace
  do stats = await events.next('stats'); while (stats.received.spans < 2)
  t.match(stats, { traces: 1, received: { spans: 2 } })
  await send([{ trace: 2, kind: 2 }])
  t.same(await events.next('routes'), {})
})

test('only traces that match the filter are sent', async (t) => {
  const { port, send, get } = await startViewer(t)
  const events = await follow(t, port, '?status=error&q=boom')
  await send([{ trace: 1, name: 'fine' }])
  await send([{ trace: 2, name: 'boom', status: 2 }])
  const { traces } = await (async () => {
    for (;;) {
      const data = await events.next('traces')
      if (data.traces.length > 0) return data
    }
  })()
  t.match(traces, [{ id: traceId(2) }])
  t.equal((await get('/api/events?status=broken')).status, 400)
})

test('of a burst, the newest traces are sent with the number of the others', async (t) => {
  const { port, send } = await startViewer(t)
  const events = await follow(t, port)
  await send(Array.from({ length: 1000 }, (_, i) => ({ trace: i + 1 })))
  const { traces, more, total } = await events.next('traces')
  t.same([traces.length, more, total], [200, 800, 1000])
  t.equal(traces.at(-1).id, traceId(1000))
})

test('traces that cost a filter too much reading are left out, and the page is told that there may be more', async (t) => {
  const { port, send } = await startViewer(t)
  const events = await follow(t, port, '?q=needle')
  const large = Array.from({ length: 1200 }, (_, i) => ({ trace: 1, id: i + 1, parent: i === 0 ? undefined : 1, name: i === 1199 ? 'needle' : 'hay' }))
  await send([{ trace: 2, name: 'needle' }, { trace: 3, name: 'hay' }, ...large])
  t.match(await events.next('traces'), { traces: [{ id: traceId(2) }], more: 1 }, 'the others are still sent')
  await send([{ trace: 4, name: 'needle' }])
  t.match(await events.next('traces'), { traces: [{ id: traceId(4) }], more: 0 })
})

test('the page is told which traces were evicted', async (t) => {
  const { port, send } = await startViewer(t, { maxBytes: 1024 * 1024 })
  const events = await follow(t, port)
  for (let trace = 1; trace <= 60; trace++) await send([{ trace, attributes: { text: 'x'.repeat(30_000) } }])
  for (;;) {
    const { traces, oldest, total } = await events.next('traces')
    t.ok(traces.every(({ order }) => order >= oldest))
    if (!traces.some(({ id }) => id === traceId(60))) continue
    t.equal(oldest + total, 61)
    t.ok(oldest > 20)
    break
  }
})

test('a page that does not read costs a bounded amount, and is told that it missed something', async (t) => {
  const { port, send, viewer } = await startViewer(t)
  const events = await follow(t, port)
  const watching = await follow(t, port)
  await events.next()
  events.response.pause()
  events.response.socket.pause()
  let most = 0
  // Sends until the buffers of the kernel and the viewer are full.
  for (let round = 0, before = -1; ; round++) {
    await send(Array.from({ length: 200 }, (_, i) => ({ trace: round * 200 + i + 1, name: 'x'.repeat(900) })))
    await watching.next('traces') // another page has received it by now
    const waiting = viewer.events.waitingBytes
    most = Math.max(most, waiting)
    if (waiting > 0 && waiting === before) break
    before = waiting
  }
  t.ok(most < 4 * 1024 * 1024, `${most}`)
  events.response.socket.resume()
  events.response.resume()
  const reset = events.next('reset')
  const told = new AbortController()
  reset.then(() => told.abort())
  for (let trace = 1e6; !told.signal.aborted; trace++) await send([{ trace }])
  t.same(await reset, {})
})

test('no more than 64 pages can connect', async (t) => {
  const { port, get, viewer } = await startViewer(t)
  const all = await Promise.all(Array.from({ length: 64 }, () => follow(t, port)))
  t.equal((await get('/api/events')).status, 503)
  all[0].response.destroy()
  while (viewer.events.size === 64) await new Promise(setImmediate)
  await follow(t, port)
})

test('other work runs between the traces that a filter reads, and what is evicted meanwhile is not sent', async (t) => {
  const store = new TraceStore({ maxBytes: 1024 * 1024 })
  const events = new Events({ store, statistics: [], stats: () => ({}), sliceMs: -1 })
  t.teardown(() => events.close())
  const response = Object.assign(new PassThrough(), { writeHead () {} })
  events.open(null, response, new URLSearchParams('q=hay'))
  const turns = new Set()
  let turn = 0
  let isDone = false
  const next = () => { if (!isDone) { turn++; setImmediate(next) } }
  setImmediate(next)
  const { get } = Object.getOwnPropertyDescriptor(TraceStore.prototype, 'oldest')
  Object.defineProperty(store, 'oldest', {
    get () {
      turns.add(turn)
      // When 50 traces have been read, the oldest of them are evicted.
      if (turns.size === 50) store.receive(encodeRequest(spansOf([{ trace: 1e6, attributes: { text: 'x'.repeat(500_000) } }])))
      return get.call(this)
    }
  })
  store.receive(encodeRequest(spansOf(Array.from({ length: 100 }, (_, i) => ({ trace: i + 1, name: 'hay', attributes: { text: 'x'.repeat(6000) } })))))
  for await (const { event, data } of readEvents(response)) {
    if (event !== 'traces') continue
    t.ok(turns.size > 50, `${turns.size}`)
    t.ok(store.evicted.traces > 0 && data.traces.length > 0 && data.traces.every(({ order }) => order >= data.oldest))
    break
  }
  isDone = true
})
