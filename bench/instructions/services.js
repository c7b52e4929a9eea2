'use strict'

// The servers that some cases' routes ask. Redis is a real redis-server; where there is none, those cases are left out.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { directoryOf, aptInstall } = require('../../scripts/services/install')
const { startRedis } = require('../../scripts/services/start')

module.exports = { withServices }

/**
 * Runs `fn` with the cases that can be served here, each knowing its server's port.
 * @param {object[]} cases
 * @param {(served: object[]) => Promise<T>} fn
 * @returns {Promise<T>}
 */
async function withServices (cases, fn) {
  if (!cases.some(({ service }) => service === 'redis')) return fn(cases)
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-redis-'))
  const redis = await redisIn(directory)
  try {
    return await fn(cases.flatMap((testCase) => served(testCase, redis)))
  } finally {
    await redis?.stop()
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

async function redisIn (directory) {
  if (directoryOf('redis-server') === undefined) await aptInstall(['redis-server'])
  const programs = directoryOf('redis-server')
  return programs === undefined ? null : startRedis(programs, directory)
}

function served (testCase, redis) {
  if (testCase.service === undefined) return [testCase]
  if (redis !== null) return [{ ...testCase, redisPort: redis.port }]
  console.error(`skipped ${testCase.name}: there is no redis-server`)
  return []
}
