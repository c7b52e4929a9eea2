import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'

/** Starts a listening app with light-trace. Returns it with the collector of its spans. */
export async function start (t, setUp, options = {}) {
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector], ...options })
  await setUp(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, collector, url: `http://127.0.0.1:${app.server.address().port}` }
}

/** Requests a stream, and disconnects after its first bytes. */
export async function leaveStream (url) {
  const controller = new AbortController()
  const response = await fetch(url, { signal: controller.signal })
  await response.body.getReader().read()
  controller.abort()
}
