'use strict'

// npm run test:services [-- test files]
//
// Installs what is missing (Debian's Redis, MariaDB and PostgreSQL where we may, Jaeger, the client libraries), starts
// the servers on free loopback ports with data directories of their own, runs test/services/ against them on this Node
// and on 24, and ends them.

const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { installJaeger } = require('./collectors/install')
const { startJaeger } = require('./collectors/start')
const { installClients, installServers } = require('./services/install')
const { startMariadb, startPostgresql, startRedis } = require('./services/start')
const { installNode, nodeBinary } = require('./matrix-cell')
const { withServers, runTests } = require('./with-servers')

const FOLDER = 'test/services'
const MORE_NODE = 24

main()

async function main () {
  const directory = mkdtempSync(path.join(tmpdir(), 'light-trace-services-'))
  await withServers(async (open) => {
    await installClients(path.join(__dirname, '..', FOLDER))
    const servers = await installServers()
    const jaeger = await open(startJaeger(await installJaeger()))
    const redis = await open(startRedis(servers.redis, directory))
    const mariadb = await open(startMariadb(servers.mariadb, directory))
    const postgresql = await open(startPostgresql(servers.postgresql, directory))
    console.log(`Redis ${redis.port}, MariaDB ${mariadb.port}, PostgreSQL ${postgresql.port}, Jaeger ${jaeger.queryUrl}`)
    return onEachNode({
      SERVICES_REDIS_PORT: redis.port,
      SERVICES_MARIADB_PORT: mariadb.port,
      SERVICES_POSTGRESQL_PORT: postgresql.port,
      COLLECTOR_JAEGER_TRACES: jaeger.tracesUrl,
      COLLECTOR_JAEGER_QUERY: jaeger.queryUrl
    })
  })
  rmSync(directory, { recursive: true, force: true })
}

async function onEachNode (env) {
  const total = { passed: 0, failed: 0 }
  for (const node of await nodes()) {
    console.log(`# ${FOLDER} on ${node}`)
    const { passed, failed } = await runTests({ folder: FOLDER, env, node })
    total.passed += passed
    total.failed += failed
  }
  return total
}

async function nodes () {
  if (Number(process.versions.node.split('.')[0]) >= MORE_NODE) return [process.execPath]
  await installNode(MORE_NODE)
  return [process.execPath, nodeBinary(MORE_NODE)]
}
