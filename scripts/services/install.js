'use strict'

// Servers are Debian packages, installed with apt if we are root. Client libraries have their own package.json, so that `npm install` of
// light-trace stays small.

module.exports = { aptInstall, directoryOf, postgresqlDirectory, installClients, installServers }

const fs = require('node:fs')
const path = require('node:path')
const { run } = require('../run')

const DEADLINE_MS = 15 * 60_000

/** @returns {Promise<{ redis: string, mariadb: string, postgresql: string }>} the directories of their programs */
async function installServers (names = Object.keys(PACKAGES)) {
  const found = locate()
  const missing = names.filter((name) => found[name] === undefined)
  if (missing.length > 0) await aptInstall(missing.map((name) => PACKAGES[name]))
  const servers = locate()
  const still = names.filter((name) => servers[name] === undefined)
  if (still.length > 0) throw new Error(`missing: ${still.map((name) => PACKAGES[name]).join(', ')}. Install them, or run as root on Debian.`)
  return servers
}

const PACKAGES = { redis: 'redis-server', mariadb: 'mariadb-server', postgresql: 'postgresql' }

function locate () {
  return {
    redis: directoryOf('redis-server'),
    mariadb: directoryOf('mariadbd'),
    postgresql: postgresqlDirectory() ?? directoryOf('initdb')
  }
}

function directoryOf (program) {
  const places = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/bin', '/usr/sbin', '/usr/local/bin']
  return places.find((place) => place !== '' && fs.existsSync(path.join(place, program)))
}

// Debian puts each version in its own directory, which is not on the PATH.
function postgresqlDirectory () {
  const base = '/usr/lib/postgresql'
  if (!fs.existsSync(base)) return undefined
  const [newest] = fs.readdirSync(base).sort((a, b) => b - a)
  const directory = path.join(base, String(newest), 'bin')
  return fs.existsSync(path.join(directory, 'initdb')) ? directory : undefined
}

/** Installs Debian packages if we are root. The caller must check whether they are there afterwards. */
async function aptInstall (packages) {
  if (process.getuid?.() !== 0) return
  console.log(`installing ${packages.join(', ')}…`)
  // Keeps apt from starting the servers: they would take their usual ports and keep running.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  await run('apt-get', ['update', '-q'], { env, deadlineMs: DEADLINE_MS })
  const { code, output } = await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...packages], { env, deadlineMs: DEADLINE_MS })
  if (code !== 0) console.error(output)
}

/** Installs the dependencies of package.json in a directory, unless exactly these are already installed. */
async function installClients (directory) {
  const wanted = JSON.stringify(JSON.parse(fs.readFileSync(path.join(directory, 'package.json'))).dependencies)
  const stamp = path.join(directory, 'node_modules', '.installed')
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === wanted) return
  console.log(`installing the packages of ${path.basename(directory)}…`)
  const { code, output } = await run('npm', ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund'], { cwd: directory, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm install in ${directory} ended with ${code}\n${output}`)
  fs.writeFileSync(stamp, wanted)
}
