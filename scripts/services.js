'use strict'

// npm run test:services [-- test files]
//
// Installs what is missing (Debian's Redis, MariaDB and PostgreSQL where we may, Jaeger, the client libraries), starts
// the servers on free loopback ports with data directories of their own, runs test/services/ against them on this Node
// and on 24, and ends them. A server that cannot be had is said and is a failure: who skips it would believe that its
// library was traced.

const { mkdtempSync, readdirSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { installJaeger } = require('./collectors/install')
const { startJaeger } = require('./collectors/start')
const { installClients, installServers } = require('./services/install')
const { startMariadb, startPostgresql, startRedis } = require('./services/start')
const { install, nodeBinary } = require('./matrix-cell')
const { countsOf } = require('./counts')
const { run } = require('./run')

const ROOT = path.join(__dirname, '..')
const TESTS = path.join('test', 'services')
const DEADLINE_MS = 10 * 60_000
const MORE_NODE = 24

main().then((code) => { process.exitCode = code })

async function main () {
  const directory = mkdtempSync(path.join(tmpdir(), 'light-trace-services-'))
  const opened = []
  const open = async (starting) => {
    const started = await starting
    opened.push(started)
    return started
  }
  let counts = { passed: 0, failed: 1 }
  try {
    await installClients(path.join(ROOT, TESTS))
    const servers = await installServers()
    const jaeger = await open(startJaeger(await installJaeger()))
    const redis = await open(startRedis(servers.redis, directory))
    const mariadb = await open(startMariadb(servers.mariadb, directory))
    const postgresql = await open(startPostgresql(servers.postgresql, directory))
    console.log(`Redis ${redis.port}, MariaDB ${mariadb.port}, PostgreSQL ${postgresql.port}, Jaeger ${jaeger.queryUrl}`)
    counts = await suites({
      SERVICES_REDIS_PORT: redis.port,
      SERVICES_MARIADB_PORT: mariadb.port,
      SERVICES_POSTGRESQL_PORT: postgresql.port,
      COLLECTOR_JAEGER_TRACES: jaeger.tracesUrl,
      COLLECTOR_JAEGER_QUERY: jaeger.queryUrl
    })
  } catch (error) {
    console.error(error.message)
  } finally {
    await Promise.all(opened.map((each) => each.stop()))
    rmSync(directory, { recursive: true, force: true })
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  return counts.failed === 0 ? 0 : 1
}

async function suites (environment) {
  const total = { passed: 0, failed: 0 }
  for (const node of await nodes()) {
    console.log(`# ${TESTS} on ${node}`)
    const { passed, failed } = await suite(node, environment)
    total.passed += passed
    total.failed += failed
  }
  return total
}

async function nodes () {
  if (Number(process.versions.node.split('.')[0]) >= MORE_NODE) return [process.execPath]
  const platform = process.platform === 'win32' ? 'win' : process.platform
  await install(`node${MORE_NODE}`, 'node', `npm:node-${platform}-${process.arch}@${MORE_NODE}`)
  return [process.execPath, nodeBinary(MORE_NODE)]
}

async function suite (node, environment) {
  const given = process.argv.slice(2)
  const files = given.length > 0 ? given : readdirSync(path.join(ROOT, TESTS)).filter((name) => name.endsWith('.test.js')).map((name) => path.join(TESTS, name))
  const tap = path.join(ROOT, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
  const { code, output } = await run(node, [tap, '--reporter=tap', '--jobs=1', ...files],
    { cwd: ROOT, env: { ...process.env, ...environment }, live: true, deadlineMs: DEADLINE_MS })
  return countsOf(output, code)
}
