// A typed request store: declare its content once, and `get`, `set` and `store` are typed.
// `npm run test:types` checks it. Node 24 runs this file directly.

import Fastify from 'fastify'
import lightTrace from 'light-trace'

declare module 'light-trace' {
  interface LightTraceStore {
    session: { userId: string, admin: boolean }
  }
}

const app = Fastify()
app.register(lightTrace, { exporter: 'none' })

app.addHook('preHandler', async (request) => {
  request.trace.set('session', { userId: 'ann', admin: true })
  // @ts-expect-error there is no `sessoin` in the store
  request.trace.set('sessoin', 1)
})

app.get('/', async (request) => {
  const session = request.trace.get('session') // { userId: string, admin: boolean } | undefined
  const same = lightTrace.current()?.get('session')
  return { userId: session?.userId, same: session === same }
})

app.inject('/').then(async ({ body }) => {
  console.log(body)
  await app.close()
})

// Prints:
// {"userId":"ann","same":true}
