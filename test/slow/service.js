'use strict'

// A service with planted causes of slowness, in a separate process. Each route measures exactly where it plants the cause, and answers with
// { waited, ran, took } in milliseconds, where `ran` is CPU time. Over IPC it reports its spans.

const http = require('node:http')
const http2 = require('node:http2')
const { writeSync } = require('node:fs')
const { once } = require('node:events')
const { Readable } = require('node:stream')
const { setTimeout: sleep } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { createCollector } = require('../../lib/features/testing/testing')
const accounts = require('../../lib/features/accounts')

const collector = createCollector()
const threadCpuUsage = (process.threadCpuUsage ?? process.cpuUsage).bind(process)

/** Returns CPU time in milliseconds. It is read twice, because Linux otherwise updates a thread's time only at its ticks. */
function cpuMs () {
  process.cpuUsage()
  const { user, system } = threadCpuUsage()
  return (user + system) / 1000
}

const text = JSON.stringify(Array.from({ length: 50 }, (_, i) => ({ id: i, name: `name ${i}`, tags: ['a', 'b'] })))

/** Uses `ms` of CPU time, however long that takes. It creates no garbage, because a collection's pause is longer if the CPU is taken away. */
function compute (ms) {
  const [start, cpu] = [performance.now(), cpuMs()]
  let sum = 0
  while (cpuMs() - cpu < ms) for (let i = 0; i < 1e5; i++) sum += i % 7
  return { took: performance.now() - start, ran: cpuMs() - cpu, sum }
}

function run (ms) {
  const [start, cpu] = [performance.now(), cpuMs()]
  while (performance.now() - start < ms) JSON.stringify(JSON.parse(text)).replace(/"(\w+)":/g, '$1=')
  return { took: performance.now() - start, ran: cpuMs() - cpu }
}

async function wait (what) {
  const start = performance.now()
  await what
  return { waited: performance.now() - start }
}

function collect (ms) {
  const start = performance.now()
  while (performance.now() - start < ms) globalThis.gc()
  return { took: performance.now() - start }
}

async function routes (app, { upstream }) {
  app.get('/fast', { config: { trace: { slow: { afterMs: 60_000 } } } }, async () => ({})) // a limit that is safe on a busy machine
  app.get('/timer', async ({ query }) => wait(sleep(Number(query.ms ?? 200))))
  app.get('/busy', async ({ query }) => {
    if (query.afterMs !== undefined) await sleep(Number(query.afterMs))
    return run(200)
  })
  app.get('/upstream', async () => wait(fetch(upstream).then((answer) => answer.text())))
  app.get('/gc', async () => collect(200))
  app.get('/gc-between', async () => {
    await sleep(20)
    const planted = collect(200)
    await sleep(20)
    return planted
  })
  app.get('/starved', async () => compute(100))
  app.get('/stopped', async () => {
    await sleep(10)
    writeSync(1, 'running\n') // the parent stops the process now, and resumes it later
    return compute(150)
  })
  app.get('/stopped-idle', async () => {
    writeSync(1, 'running\n')
    return wait(sleep(100))
  })
  app.get('/hijacked', async (request, reply) => {
    reply.hijack()
    await sleep(200)
    reply.raw.end('{}')
  })
  app.get('/streamed', (request, reply) => {
    reply.send(Readable.from((async function * () {
      for (let part = 0; part < 4; part++) {
        await sleep(50)
        yield 'x'.repeat(1000)
      }
    })()))
  })
  app.get('/aborted', async () => wait(sleep(10_000, undefined, { ref: false })))
  app.get('/fails', async (request, reply) => {
    reply.code(500)
    return wait(sleep(50))
  })
  app.get('/clock', async () => {
    const { now } = Date
    const planted = wait(sleep(200))
    await sleep(100)
    Date.now = () => now() + 3600_000
    await planted
    Date.now = now
    return planted
  })
  // Takes more samples than are kept, so that the oldest one left is long after the start.
  app.get('/outlives', async () => {
    await sleep(100)
    accounts.spaceBy(-1)
    for (let i = 0; i < 10_000; i++) accounts.takeDueSample(performance.now())
    accounts.spaceBy(accounts.SPACING_MS)
    return wait(sleep(200))
  })
}

async function main () {
  const upstream = http.createServer(async (request, response) => {
    await sleep(200)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  await fetch(`http://127.0.0.1:${upstream.address().port}`) // the first call loads Node's fetch, which is not waiting
  const origins = {}
  for (const version of ['http', 'http2']) {
    const app = Fastify({ http2: version === 'http2', forceCloseConnections: version === 'http' })
    await app.register(lightTrace, { spanProcessors: [collector], registerGlobals: false, slow: { afterMs: 100 } })
    await app.register(routes, { upstream: `http://127.0.0.1:${upstream.address().port}` })
    origins[version] = await app.listen({ port: 0, host: '127.0.0.1' })
  }
  process.on('message', async (asked) => {
    if (asked === 'http2') return process.send(await askHttp2(origins.http2))
    const spans = await collector.spans()
    collector.reset()
    process.send(spans.filter(({ kind }) => kind === 'SERVER'))
  })
  process.on('disconnect', () => process.exit())
  process.send(origins)
}

async function askHttp2 (origin) {
  const session = http2.connect(origin)
  const request = session.request({ ':path': '/timer' })
  request.resume()
  await once(request, 'close')
  session.close()
  return {}
}

main()
