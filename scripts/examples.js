'use strict'

// npm run test:examples [-- test files]
//
// Tries the example projects as a newcomer does: each is copied to a directory of its own, the packed package and what else
// it asks for is installed there, and test/examples/ starts it by its own command. Redis and PostgreSQL are Debian's.

const { cpSync, mkdtempSync, readdirSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { environment, pack } = require('./ecosystem')
const { run } = require('./run')
const { installServers } = require('./services/install')
const { startPostgresql, startRedis } = require('./services/start')
const { withServers, runTests } = require('./with-servers')

const FOLDER = 'test/examples'
const EXAMPLES = path.join(__dirname, '..', 'examples')
const PROJECTS = readdirSync(EXAMPLES, { recursive: true }).filter((name) => /^[\w-]+[/\\]package\.json$/.test(name)).map((name) => path.dirname(name))
const INSTALLS_AT_ONCE = 2
const INSTALL_DEADLINE_MS = 5 * 60_000

main()

async function main () {
  const directory = mkdtempSync(path.join(tmpdir(), 'light-trace-examples-'))
  await withServers(async (open) => {
    const servers = await installServers(['redis', 'postgresql'])
    const tarball = await pack(directory)
    const waiting = [...PROJECTS]
    await Promise.all(Array.from({ length: INSTALLS_AT_ONCE }, async () => {
      for (let name; (name = waiting.shift()) !== undefined;) await install(name, path.join(directory, name), tarball)
    }))
    console.log(`${PROJECTS.length} projects installed after ${Math.round(process.uptime())} s`)
    const redis = await open(startRedis(servers.redis, directory))
    const postgresql = await open(startPostgresql(servers.postgresql, directory))
    return runTests({
      folder: FOLDER,
      env: { EXAMPLES_DIRECTORY: directory, SERVICES_REDIS_PORT: redis.port, SERVICES_POSTGRESQL_PORT: postgresql.port }
    })
  })
  rmSync(directory, { recursive: true, force: true })
}

async function install (name, directory, tarball) {
  cpSync(path.join(EXAMPLES, name), directory, { recursive: true, filter: (file) => !/^(?:node_modules|dist|package-lock\.json)$/.test(path.basename(file)) })
  const { code, output } = await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], { cwd: directory, env: environment(), deadlineMs: INSTALL_DEADLINE_MS })
  if (code !== 0) throw new Error(`npm install of examples/${name} ended with ${code}\n${output}`)
}
