import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'

/** A listening app with light-trace, and the collector of its spans. */
export async function start (t, setUp, options = {}) {
  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  await app.register(lightTrace, { spanProcessors: [collector], ...options })
  await setUp(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, collector, url: `http://127.0.0.1:${app.server.address().port}` }
}

/** Asks for a stream, and leaves when its first bytes are there. */
export async function leaveStream (url) {
  const controller = new AbortController()
  const response = await fetch(url, { signal: controller.signal })
  await response.body.getReader().read()
  controller.abort()
}
