'use strict'

// A store for each request, and `lightTrace.current()` for code that does not receive the request.

const Fastify = require('fastify')
const { setTimeout } = require('node:timers/promises')
const lightTrace = require('light-trace')

const app = Fastify()
app.register(lightTrace, {
  exporter: 'none',
  store: (request) => ({ tenant: request.headers['x-tenant'] ?? 'nobody' })
})

app.addHook('preHandler', async (request) => { request.trace.set('user', { id: request.query.user }) })
app.get('/', async () => describeCaller())

// Deep in the application: it has no request and no arguments, but gets the right store.
async function describeCaller () {
  await setTimeout(1)
  const { store } = lightTrace.current()
  return `${store.user.id} of ${store.tenant}`
}

async function main () {
  const ask = (user, tenant) => app.inject({ url: `/?user=${user}`, headers: { 'x-tenant': tenant } })
  const answers = await Promise.all([ask('ann', 'acme'), ask('bob', 'initech')])
  for (const { body } of answers) console.log(body)
  console.log('outside of a request:', lightTrace.current())
  await app.close()
}

main()

// Prints:
// ann of acme
// bob of initech
// outside of a request: undefined
