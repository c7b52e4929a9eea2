'use strict'

// The servers that some routes query. Redis and PostgreSQL are real. A case whose server is not available is skipped.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { directoryOf, postgresqlDirectory, aptInstall } = require('../../scripts/services/install')
const { startRedis, startPostgresql } = require('../../scripts/services/start')

const SERVICES = {
  redis: { debian: 'redis-server', find: () => directoryOf('redis-server'), start: startRedis },
  postgresql: { debian: 'postgresql', find: () => postgresqlDirectory() ?? directoryOf('initdb'), start: startPostgresql }
}

module.exports = { withServices }

/**
 * Runs `fn` with the cases that can be served here, and adds the port of its server to each.
 * @param {object[]} cases
 * @param {(served: object[]) => Promise<T>} fn
 * @returns {Promise<T>}
 */
async function withServices (cases, fn) {
  const names = new Set(cases.map(({ service }) => service).filter((service) => service !== undefined))
  if (names.size === 0) return fn(cases)
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-services-'))
  const running = {}
  try {
    for (const name of names) running[name] = await startIn(directory, SERVICES[name])
    return await fn(cases.flatMap((testCase) => served(testCase, running)))
  } finally {
    for (const service of Object.values(running)) await service?.stop()
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

async function startIn (directory, { debian, find, start }) {
  if (find() === undefined) await aptInstall([debian])
  const programs = find()
  return programs === undefined ? null : start(programs, directory)
}

function served (testCase, running) {
  const { service } = testCase
  if (service === undefined) return [testCase]
  if (running[service] !== null) return [{ ...testCase, [`${service}Port`]: running[service].port }]
  console.error(`skipped ${testCase.name}: ${service} is not available`)
  return []
}
