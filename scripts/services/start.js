'use strict'

// Runs the servers as processes on the loopback interface, each with a data directory in the given one. PostgreSQL refuses to run as root,
// so it runs as the user that its package created.

module.exports = { startMariadb, startPostgresql, startRedis }

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { setTimeout: pause } = require('node:timers/promises')
const { run, start } = require('../run')
const { freePort } = require('../free-port')

const READY_MS = 60_000
const isRoot = process.getuid?.() === 0

/** @returns {Promise<{ port: number, pid: number, stop: () => Promise<void> }>} */
async function startRedis (programs, directory) {
  const port = await freePort()
  const child = start(path.join(programs, 'redis-server'),
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory])
  return ready('Redis', child, port, async () => connects(port))
}

async function startMariadb (programs, directory) {
  const data = path.join(directory, 'mariadb')
  fs.mkdirSync(data)
  const socket = path.join(directory, 'm.sock')
  const common = ['--no-defaults', `--datadir=${data}`, ...(isRoot ? ['--user=root'] : [])]
  await must('mariadb-install-db', [...common, '--auth-root-authentication-method=normal', '--skip-test-db'])
  const port = await freePort()
  const child = start(path.join(programs, 'mariadbd'), [...common, `--port=${port}`, '--bind-address=127.0.0.1', `--socket=${socket}`, `--pid-file=${path.join(directory, 'm.pid')}`])
  return ready('MariaDB', child, port, async () => (await run('mariadb-admin', ['--no-defaults', `--socket=${socket}`, '-uroot', 'ping'], {})).code === 0)
}

async function startPostgresql (programs, directory) {
  const data = path.join(directory, 'postgresql')
  fs.mkdirSync(data)
  if (isRoot) {
    fs.chmodSync(directory, 0o755)
    await must('chown', ['postgres', data])
  }
  const as = (program, args) => isRoot ? ['setpriv', ['--reuid=postgres', '--regid=postgres', '--clear-groups', path.join(programs, program), ...args]] : [path.join(programs, program), args]
  await must(...as('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-N', '--locale=C', '-E', 'UTF8']))
  const port = await freePort()
  const child = start(...as('postgres', ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', data, '-F']))
  return ready('PostgreSQL', child, port, async () => (await run(path.join(programs, 'pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)], {})).code === 0)
}

async function ready (name, child, port, answers) {
  for (const deadline = Date.now() + READY_MS; child.alive() && Date.now() < deadline; await pause(100)) {
    if (await answers() && child.alive()) return { port, pid: child.pid, stop: child.stop }
  }
  await child.stop()
  throw new Error(`${name} did not start\n${child.output()}`)
}

function connects (port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true) })
    socket.on('error', () => resolve(false))
  })
}

async function must (command, args) {
  const { code, output } = await run(command, args, { deadlineMs: READY_MS })
  if (code !== 0) throw new Error(`${command} ended with ${code}\n${output}`)
}
