'use strict'

// The calls: each makes `count` of them, CONCURRENT at a time, and throws where an answer is wrong.

const { createRequire } = require('node:module')
const path = require('node:path')
const undici = require('undici8')

module.exports = { openWorkloads }

const CONCURRENT = 50
const VALUE = 'a value of twenty ch'

async function openWorkloads ({ origin, redis }) {
  const pool = new undici.Agent()
  const workloads = {
    fetch: (count, target) => concurrently(count, async () => {
      const response = await fetch(origin + target)
      expect(response.status, 200)
      expect(await response.text(), '{"hello":"world"}')
    }),
    'undici.request': (count, target) => concurrently(count, async () => {
      const { statusCode, body } = await undici.request(origin + target, { dispatcher: pool })
      expect(statusCode, 200)
      expect(await body.text(), '{"hello":"world"}')
    })
  }
  if (redis === undefined) return workloads
  const client = await redisClient(redis)
  workloads['redis GET'] = (count) => concurrently(count, async () => expect(await client.get('user:1'), VALUE))
  return workloads
}

// The client that npm run test:services uses.
async function redisClient (port) {
  const { createClient } = createRequire(path.join(__dirname, '../../test/services/package.json'))('redis')
  const client = createClient({ url: `redis://127.0.0.1:${port}` })
  await client.connect()
  await client.set('user:1', VALUE)
  return client
}

async function concurrently (count, call) {
  let left = count
  const worker = async () => { while (left-- > 0) await call() }
  await Promise.all(Array.from({ length: CONCURRENT }, worker))
}

function expect (found, wanted) {
  if (found !== wanted) throw new Error(`${wanted} was expected, ${found} came`)
}
