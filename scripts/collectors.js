'use strict'

// npm run test:collector [-- test files]
//
// Installs the collectors that are missing, starts them on free loopback ports, runs test/collector/ against them and
// ends them. A collector that cannot be had is a failure: who skips it would believe that it understood our bytes.

const { readdirSync } = require('node:fs')
const path = require('node:path')
const { installJaeger, installRotel } = require('./collectors/install')
const { startJaeger, startRotel } = require('./collectors/start')
const { startRecorder } = require('./collectors/recorder')
const { run } = require('./run')
const { countsOf } = require('./counts')

const ROOT = path.join(__dirname, '..')
const TESTS = path.join('test', 'collector')
const DEADLINE_MS = 10 * 60_000

main().then((code) => { process.exitCode = code })

async function main () {
  const opened = []
  const open = async (starting) => {
    const started = await starting
    opened.push(started)
    return started
  }
  let counts = { passed: 0, failed: 1 }
  try {
    const recorder = await open(startRecorder())
    const jaeger = await open(startJaeger(await installJaeger()))
    const rotel = await open(startRotel(await installRotel(), recorder.otlpUrl))
    console.log(`Jaeger: OTLP ${jaeger.tracesUrl}, query ${jaeger.queryUrl}; rotel: OTLP ${rotel.tracesUrl}`)
    counts = await suite({
      COLLECTOR_JAEGER_TRACES: jaeger.tracesUrl,
      COLLECTOR_JAEGER_QUERY: jaeger.queryUrl,
      COLLECTOR_ROTEL_TRACES: rotel.tracesUrl,
      COLLECTOR_ROTEL_QUERY: recorder.queryUrl
    })
  } catch (error) {
    console.error(error.message)
  } finally {
    await Promise.all(opened.map((each) => each.stop()))
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  return counts.failed === 0 ? 0 : 1
}

async function suite (urls) {
  const files = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(path.join(ROOT, TESTS)).filter((name) => name.endsWith('.test.js')).map((name) => path.join(TESTS, name))
  const tap = path.join(ROOT, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
  const { code, output } = await run(process.execPath, [tap, '--reporter=tap', ...files],
    { cwd: ROOT, env: { ...process.env, ...urls }, live: true, deadlineMs: DEADLINE_MS })
  return countsOf(output, code)
}
