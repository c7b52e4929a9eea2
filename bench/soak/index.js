'use strict'

// npm run soak [-- --minutes 10] [--seed N] [--rate 500] [--metrics] [--publish] [--no-real]
//
// Puts an app under steady load while its collector fails in every way that schedule.js lists. Reports what that cost and what was lost,
// compared with the same app without light-trace, which gets the same requests at the same time. Ends with `N passed, N failed`.

const path = require('node:path')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { setTimeout: pause } = require('node:timers/promises')
const { installJaeger, installRotel } = require('../../scripts/collectors/install')
const { startJaeger, startRotel } = require('../../scripts/collectors/start')
const { startRecorder } = require('../../scripts/collectors/recorder')
const { SoakCollector } = require('./collector')
const { makeSchedule } = require('./schedule')
const { summarise, asText, publish } = require('./report')

// About four seconds of the default load, and several times that when compressed. The longest outages overflow it. Shorter ones must not
// lose a span.
const BUFFER_BYTES = 1024 * 1024
const TRACE_OPTIONS = { registerGlobals: false, buffer: { maxBytes: BUFFER_BYTES, flushDelayMs: 500 }, logs: false }
const METRICS = { intervalMs: 1000 }
const TIMEOUT_MS = 1500
const WARM_UP_S = 5

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '500' },
    metrics: { type: 'boolean', default: false },
    publish: { type: 'boolean', default: false },
    'no-real': { type: 'boolean', default: false }
  }
})
const minutes = Number(values.minutes)
const perSecond = Number(values.rate)
const seed = Number(values.seed)

main().then((code) => { process.exitCode = code })

async function main () {
  const collector = new SoakCollector()
  await collector.up()
  const real = values['no-real'] ? [] : await startRealCollectors()
  try {
    const healthy = [{ name: 'healthy', how: {} }, ...real.map(({ name, tracesUrl }) => ({ name, how: { forward: tracesUrl } }))]
    const phases = makeSchedule(minutes * 60, seed, healthy)
    for (const phase of phases) phase.isFault = !healthy.some(({ name }) => name === phase.name)
    const { traced, bare } = await run({ ...TRACE_OPTIONS, exporter: { url: collector.url, timeoutMs: TIMEOUT_MS }, metrics: values.metrics && METRICS }, phases, collector)
    const summary = summarise({
      seed, minutes, perSecond, maxBytes: BUFFER_BYTES, real: real.map(({ name }) => name), bare, traced, phases, collector: { ...collector.counts, connectionsMost: collector.connectionsMost }, measured: values.metrics ? collector.measured : null
    })
    const { text, failed } = asText(summary)
    console.log(text)
    if (values.publish) publish(summary)
    return failed === 0 ? 0 : 1
  } finally {
    await Promise.all([collector.down(), ...real.map((each) => each.stop())])
  }
}

// If a collector cannot be installed or started, that is logged and the soak continues without it.
async function startRealCollectors () {
  const started = []
  const attempt = async (name, start) => {
    try {
      started.push({ name, ...await start() })
    } catch (error) {
      console.error(`without ${name}: ${error.message}`)
    }
  }
  await attempt('Jaeger', async () => startJaeger(await installJaeger(), ['--memory.max-traces=10000']))
  await attempt('rotel', async () => {
    const recorder = await startRecorder()
    const rotel = await startRotel(await installRotel(), recorder.otlpUrl)
    return { ...rotel, stop: () => Promise.all([rotel.stop(), recorder.stop()]) }
  })
  return started
}

// Runs two servers and one load process through all phases.
async function run (trace, phases, collector) {
  const traced = await startServer(trace)
  const bare = await startServer(null)
  const load = fork(path.join(__dirname, 'load.js'), [JSON.stringify({ ports: { traced: traced.port, bare: bare.port }, perSecond })])
  const finished = once(load, 'message')
  await pause(WARM_UP_S * 1000)
  for (const [index, phase] of phases.entries()) {
    console.log(`${index + 1}/${phases.length} ${phase.name}, ${phase.seconds.toFixed(1)} s`)
    load.send({ phase: phase.name })
    await go(phase, collector)
  }
  await go({ seconds: 1 }, collector)
  load.send({ stop: true })
  const [figures] = await finished
  return {
    traced: { load: figures.traced, server: await traced.close() },
    bare: { load: figures.bare, server: await bare.close() }
  }
}

async function startServer (trace) {
  const server = fork(path.join(__dirname, 'server.js'), [JSON.stringify({ trace })])
  const [{ port }] = await once(server, 'message')
  return {
    port,
    async close () {
      server.send('close')
      const [{ closed }] = await once(server, 'message')
      return closed
    }
  }
}

async function go ({ seconds, how = {}, isDown = false, flapEveryMs = 0 }, collector) {
  collector.how = how
  const until = performance.now() + seconds * 1000
  if (flapEveryMs > 0) {
    while (performance.now() < until) {
      await collector.down()
      await pause(flapEveryMs)
      await collector.up()
      await pause(flapEveryMs)
    }
  } else {
    if (isDown) await collector.down()
    await pause(until - performance.now())
  }
  await collector.up()
}
