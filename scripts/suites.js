'use strict'

// npm run test:suite                                      lists the suites
// npm run test:suite -- <suite> [--node 20]… [files or folders]
//
// Suites that need more than Node: servers, a browser, other packages, or an otherwise idle machine. Installs what is missing, starts
// servers on free loopback ports, runs the suite's tests against them, stops them, and prints `N passed, N failed`. If something cannot be
// installed, the suite fails: skipping it would look as if it had been tested.

const { cpSync, mkdtempSync, readdirSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { environment, pack, runEcosystem, runInterop } = require('./apps')
const { installJaeger, installOtelcol, installPeers, installPrometheus, installPrometheusOtlp, installRotel } = require('./collectors/install')
const { startJaeger, startRotel } = require('./collectors/start')
const { startRecorder } = require('./collectors/recorder')
const { countsOf } = require('./counts')
const { installNode, nodeBinary } = require('./matrix-cell')
const { run } = require('./run')
const { installClients, installServers } = require('./services/install')
const { startMariadb, startPostgresql, startRedis } = require('./services/start')
const { runFiles, testsIn } = require('./tests')
const { chromium } = require('./viewer/chromium')
const { runFeatures } = require('./without')
const { installSenders } = require('./viewer/senders')

const ROOT = path.join(__dirname, '..')
const EXAMPLES = path.join(ROOT, 'examples')
const PROJECTS = readdirSync(EXAMPLES, { recursive: true }).filter((name) => /^[\w-]+[/\\]package\.json$/.test(name)).map((name) => path.dirname(name))
const INSTALLS_AT_ONCE = 2
const INSTALL_DEADLINE_MS = 5 * 60_000
const THIS_NODE = process.versions.node.split('.')[0]

// about    one line; CONTRIBUTING.md lists what each suite needs and how long it takes
// folders  the tests. `prepare` returns their environment variables; everything it opens is always stopped afterwards, in reverse order
// nodes    the Node majors to run on; default: the running one
// run      replaces these: the suite's own runner, which gets the arguments
const SUITES = {
  collector: {
    about: 'spans are read back from Jaeger and rotel',
    folders: ['test/collector'],
    async prepare (open) {
      const recorder = await open(startRecorder())
      const rotel = await open(startRotel(await installRotel(), recorder.otlpUrl))
      return { ...await jaeger(open), COLLECTOR_ROTEL_TRACES: rotel.tracesUrl, COLLECTOR_ROTEL_QUERY: recorder.queryUrl }
    }
  },
  fleet: {
    about: 'two tiers of an OpenTelemetry Collector, with the files of examples/fleet',
    folders: ['test/fleet'],
    prepare: async () => ({ COLLECTOR_OTELCOL: await installOtelcol() }),
    timeoutS: 240,
    deadlineMs: 300_000
  },
  metrics: {
    about: "metrics and log records against Prometheus, promtool, rotel, and the SDK's instrumentations of HTTP and pino",
    folders: ['test/metrics-servers'],
    async prepare () {
      const prometheus = await installPrometheus()
      return {
        METRICS_PROMETHEUS: prometheus,
        METRICS_PROMTOOL: prometheus.replace(/prometheus$/, 'promtool'),
        METRICS_PROMETHEUS_OTLP: await installPrometheusOtlp(),
        METRICS_ROTEL: await installRotel(),
        METRICS_PEERS: await installPeers()
      }
    },
    timeoutS: 120
  },
  services: {
    about: 'the clients of Redis, MariaDB and PostgreSQL against real servers',
    folders: ['test/services'],
    nodes: [THIS_NODE, '24'],
    async prepare (open) {
      await installClients(path.join(ROOT, 'test', 'services'))
      const programs = await installServers()
      const directory = await temporary(open)
      const mariadb = await open(startMariadb(programs.mariadb, directory))
      return { ...await jaeger(open), ...await redisAndPostgresql(open, programs, directory), SERVICES_MARIADB_PORT: mariadb.port }
    }
  },
  examples: {
    about: 'each project of examples/ with the packed package, started by its own command as a newcomer does',
    folders: ['test/examples'],
    async prepare (open) {
      const programs = await installServers(['redis', 'postgresql'])
      const directory = await temporary(open)
      await installExamples(directory)
      return { EXAMPLES_DIRECTORY: directory, ...await redisAndPostgresql(open, programs, directory) }
    }
  },
  ecosystem: { about: 'the packed package in apps of their own: frameworks, bundlers, test runners, the suites of Fastify and its plugins', run: runEcosystem },
  interop: { about: "OpenTelemetry's real SDK 2.x and 3.x, with their instrumentations", run: runInterop },
  viewer: {
    about: "the viewer's page in a real browser, and OpenTelemetry's SDKs that send to it",
    folders: ['test/browser', 'test/senders'],
    prepare: async () => ({ LIGHT_TRACE_CHROMIUM: await chromium(), ...await installSenders() }),
    timeoutS: 600, // a file needs a minute, and five beside much else
    deadlineMs: 660_000
  },
  site: {
    about: 'the site of the docs: its links, each page in a real browser, the search',
    folders: ['test/site'],
    async prepare (open) {
      const { build, serve, BUILT } = require('../site')
      await build()
      const { url } = await open(serve(0))
      return { LIGHT_TRACE_SITE: BUILT, LIGHT_TRACE_SITE_URL: url, LIGHT_TRACE_CHROMIUM: await chromium() }
    },
    timeoutS: 480
  },
  features: { about: 'each feature of lib/features.js is removed from a copy, and the rest is tested', run: runFeatures },
  house: { about: 'the repository itself: docs against code, modules, packed files, workflows', folders: ['test/house'], prepare: async () => ({}) },
  slow: {
    about: 'the waiting times of slow requests, against planted causes; nothing else may run at the same time',
    folders: ['test/slow'],
    nodes: ['20', '22', '24', '26'],
    prepare: async () => ({})
  },
  faults: { about: 'the fault matrix at full length, on Node 20 and 24', run: (files) => matrix('--long', '--at-once', '--only', 'node20', '--only', 'node24', ...files.length > 0 ? files : ['test/faults']) }
}

module.exports = { SUITES }

if (require.main === module) main().then((code) => { process.exitCode = code })

async function main () {
  // `all` and `update` are options of scripts/apps.js.
  const { values, positionals: [name, ...given] } = parseArgs({ options: { node: { type: 'string', multiple: true }, all: { type: 'boolean' }, update: { type: 'boolean' } }, allowPositionals: true })
  if (!Object.hasOwn(SUITES, name ?? '')) {
    console.log(Object.entries(SUITES).map(([name, { about }]) => `${name.padEnd(10)} ${about}`).join('\n'))
    return name === undefined ? 0 : 1
  }
  const { passed, failed } = await runSuite(SUITES[name], given, values.node).catch((error) => {
    console.error(error.message)
    return { passed: 0, failed: 1 }
  })
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}

async function runSuite ({ run, folders, prepare, nodes = [THIS_NODE], ...limits }, given, asked = nodes) {
  if (run !== undefined) return run(given)
  const files = (given.length > 0 ? given : folders).flatMap(testsIn)
  const opened = []
  const open = async (starting) => {
    opened.unshift(await starting)
    return opened[0]
  }
  const total = { passed: 0, failed: 0 }
  try {
    const env = await prepare(open)
    for (const major of new Set(asked)) {
      console.log(`# on Node ${major}`)
      const { passed, failed } = await runFiles(files, { env, node: await binaryOf(major), ...limits })
      total.passed += passed
      total.failed += failed
    }
  } finally {
    for (const each of opened) await each.stop()
  }
  return total
}

async function binaryOf (major) {
  if (major === THIS_NODE) return process.execPath
  await installNode(major)
  return nodeBinary(major)
}

async function matrix (...args) {
  const { code, output } = await run(process.execPath, [path.join(__dirname, 'matrix.js'), ...args], { cwd: ROOT, live: true })
  return countsOf(output, code)
}

async function jaeger (open) {
  const { tracesUrl, queryUrl } = await open(startJaeger(await installJaeger()))
  return { COLLECTOR_JAEGER_TRACES: tracesUrl, COLLECTOR_JAEGER_QUERY: queryUrl }
}

async function redisAndPostgresql (open, programs, directory) {
  const redis = await open(startRedis(programs.redis, directory))
  const postgresql = await open(startPostgresql(programs.postgresql, directory))
  return { SERVICES_REDIS_PORT: redis.port, SERVICES_POSTGRESQL_PORT: postgresql.port }
}

async function temporary (open) {
  const directory = mkdtempSync(path.join(tmpdir(), 'light-trace-suite-'))
  await open({ stop: () => rmSync(directory, { recursive: true, force: true }) })
  return directory
}

// Copies each example to its own directory, and installs the packed package and the example's other dependencies there.
async function installExamples (directory) {
  const tarball = await pack(directory)
  const waiting = [...PROJECTS]
  await Promise.all(Array.from({ length: INSTALLS_AT_ONCE }, async () => {
    for (let name; (name = waiting.shift()) !== undefined;) {
      const to = path.join(directory, name)
      cpSync(path.join(EXAMPLES, name), to, { recursive: true, filter: (file) => !/^(?:node_modules|dist|package-lock\.json)$/.test(path.basename(file)) })
      const { code, output } = await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], { cwd: to, env: environment(), deadlineMs: INSTALL_DEADLINE_MS })
      if (code !== 0) throw new Error(`npm install of examples/${name} ended with ${code}\n${output}`)
    }
  }))
  console.log(`${PROJECTS.length} projects installed after ${Math.round(process.uptime())} s`)
}
