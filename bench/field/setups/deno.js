'use strict'

// Deno's own server, bare or with the tracing that is built into Deno (OTEL_DENO). Deno says neither how many spans it made nor
// when they are out: what its requests should have made is compared with what the sink received, and shown.

/* global Deno */

module.exports = ({ traced }) => {
  let served = 0
  return {
    versions: () => ({ deno: Deno.version.deno }),
    async start () {
      const server = Deno.serve({ port: 0, hostname: '127.0.0.1', onListen () {} }, (request) => {
        served++
        return handle(request)
      })
      return { port: server.addr.port }
    },
    ...(traced && { counts: () => ({ created: served, delivered: served, rejected: 0, dropped: 0, waiting: 0 }) })
  }
}

async function handle (request) {
  const { pathname } = new URL(request.url)
  if (pathname === '/') return Response.json({ hello: 'world' })
  if (pathname === '/echo' && request.method === 'POST') return Response.json(await request.json())
  return new Response('hello world', { status: pathname === '/text' ? 200 : 404 })
}
