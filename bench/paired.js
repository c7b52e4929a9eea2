'use strict'

// npm run bench:paired: what a request costs, on a machine that does not hold still.
//
// All cases live in one process, with a client of raw pipelined sockets, and take turns every 2,000
// requests; a slice's figure is the process's CPU time, user and system, over its requests. Whatever else
// the machine does hits all cases alike, and the tenth percentile of 150 slices is what it costs when
// nothing does. The client is in every figure, so only differences mean something. The collector is a
// process of its own and counts what arrives. Writes bench/results/paired.json.

const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { AsyncLocalStorage } = require('node:async_hooks')
const { execFileSync, fork } = require('node:child_process')
const { writeFileSync } = require('node:fs')
const Fastify = require('fastify')
const lightTrace = require('..')

const SLICES = 150
const REQUESTS = 2000
const CONNECTIONS = 10
const PIPELINED = 10
const WARM_UP = 10

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n'
const ANSWER = '{"hello":"world"}'

const cases = {
  bare: () => {},
  'als-floor': (app) => {
    const storage = new AsyncLocalStorage()
    app.addHook('onRequest', (request, reply, done) => storage.run({}, done))
  },
  off: (app) => {
    process.env.OTEL_SDK_DISABLED = 'true'
    return app.register(lightTrace)
  },
  unsampled: (app, url) => app.register(lightTrace, { exporter: { url }, sampler: 'always_off' }),
  delivered: (app, url) => app.register(lightTrace, { exporter: { url } })
}

if (process.argv[2] === 'sink') sink()
else main().catch((error) => { console.error(error); process.exitCode = 1 })

async function main () {
  const collector = fork(__filename, ['sink'])
  const [url] = await once(collector, 'message')
  const names = Object.keys(cases)
  const servers = []
  for (const name of names) servers.push(await start(cases[name], url))
  const micros = names.map(() => [])
  for (let i = -WARM_UP; i < SLICES; i++) {
    for (let k = 0; k < names.length; k++) {
      const turn = (k + Math.max(i, 0)) % names.length
      const before = process.cpuUsage()
      await servers[turn].serve(REQUESTS)
      const { user, system } = process.cpuUsage(before)
      if (i >= 0) micros[turn].push((user + system) / REQUESTS)
    }
  }
  const { app } = servers.at(-1)
  await app.lightTrace.flush()
  const { delivered } = app.lightTrace.stats().spans
  collector.send('count')
  const [received] = await once(collector, 'message')
  const requests = (SLICES + WARM_UP) * REQUESTS
  if (delivered !== requests || !(received > 0)) throw new Error(`invalid: ${requests} requests, ${delivered} spans delivered, ${received} bytes received`)
  report(names, micros, { requests, delivered, receivedBytes: received })
  collector.disconnect()
  process.exit()
}

function report (names, micros, counted) {
  const rows = names.map((name, i) => {
    const over = (share) => Number((quantile(micros[i], share) - quantile(micros[0], share)).toFixed(3))
    return { name, micros: Number(quantile(micros[i], 0.1).toFixed(3)), over: over(0.1), overP25: over(0.25), overP50: over(0.5) }
  })
  console.table(rows)
  const result = {
    date: new Date().toISOString(),
    commit: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: __dirname, encoding: 'utf8' }).trim(),
    node: process.version,
    machine: { cpu: os.cpus()[0].model, cores: os.cpus().length, loadAfter: os.loadavg()[0] },
    profile: { slices: SLICES, requests: REQUESTS, connections: CONNECTIONS, pipelined: PIPELINED },
    counted,
    rows
  }
  writeFileSync(path.join(__dirname, 'results/paired.json'), JSON.stringify(result, null, 1) + '\n')
}

async function start (prepare, url) {
  const app = Fastify()
  await prepare(app, url)
  delete process.env.OTEL_SDK_DISABLED
  app.get('/', async () => ({ hello: 'world' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const batch = Buffer.from(REQUEST.repeat(PIPELINED))
  let left = 0
  let busy = 0
  let finish
  let answerBytes = 0
  const sockets = []
  for (let i = 0; i < CONNECTIONS; i++) {
    const socket = net.connect(app.server.address().port, '127.0.0.1').setNoDelay(true)
    await once(socket, 'connect')
    let got = 0
    socket.on('data', (chunk) => {
      if (answerBytes === 0) answerBytes = chunk.indexOf(ANSWER) + ANSWER.length
      got += chunk.length
      if (got < answerBytes * PIPELINED) return
      got -= answerBytes * PIPELINED
      left -= PIPELINED
      if (left > 0) socket.write(batch)
      else if (--busy === 0) finish()
    })
    sockets.push(socket)
  }
  return {
    app,
    serve (requests) {
      left = requests - (CONNECTIONS - 1) * PIPELINED
      busy = CONNECTIONS
      return new Promise((resolve) => {
        finish = resolve
        for (const socket of sockets) socket.write(batch)
      })
    }
  }
}

function quantile (values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]
}

function sink () {
  let bytes = 0
  const server = require('node:http').createServer((request, response) => {
    request.on('data', (chunk) => { bytes += chunk.length })
    request.on('end', () => response.end())
  }).listen(0, '127.0.0.1', () => process.send(`http://127.0.0.1:${server.address().port}/v1/traces`))
  process.on('message', () => process.send(bytes))
  process.on('disconnect', () => process.exit())
}
