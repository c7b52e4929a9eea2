'use strict'

// Run with `--import light-trace/register`. The first application does not mention light-trace. The second registers it itself, and its
// options are used.

const path = require('node:path')
const { Fastify, lightTrace } = require(path.join(process.env.FIXTURE, 'kit.js'))

main()

async function main () {
  const app = Fastify()
  app.get('/users/:id', async (request) => ({ current: lightTrace.current() === request.trace }))
  app.register(async (child) => { child.get('/child/:id', async () => 'ok') })
  const { current } = (await app.inject('/users/7')).json()
  await app.inject('/child/1')
  const decorated = typeof app.lightTrace?.stats === 'function'
  await app.close()

  const other = Fastify()
  await other.register(lightTrace, { exporter: 'none', serviceName: 'mine' })
  other.get('/', async () => 'ok')
  await other.inject('/')
  const { mode, spans } = other.lightTrace.stats()
  await other.close()
  console.log(JSON.stringify({ current, decorated, explicit: spans.started === 1 ? mode : spans.started }))
}
