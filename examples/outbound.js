'use strict'

// Outgoing calls. `fetch`, undici, node:http and node:https get a CLIENT span and pass the trace on. light-trace uses the diagnostics
// channels that they publish. See docs/outbound.md.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

async function main () {
  const app = Fastify()
  await app.register(lightTrace, {
    exporter: 'console',
    outbound: { propagateTo: (url) => url.startsWith('http://127.0.0.1') } // the hosts that may see our trace headers
  })

  app.get('/stock/:item', async () => ({ left: 3 }))
  app.get('/items/:item', async (request) => {
    const response = await fetch(`${app.listeningOrigin}/stock/${request.params.item}`)
    return response.json()
  })
  app.get('/by-hand', async (request) => {
    // For a transport that nothing traces, such as a message queue or a socket. Each call gets its own parent id.
    return Object.keys(request.trace.inject())
  })

  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await fetch(`${origin}/items/lamp`)
  console.log(await (await fetch(`${origin}/by-hand`)).json())
  await app.close()
}

main()

// Prints:
// SERVER GET /stock/:item … ms trace_id=…
// SERVER GET /items/:item … ms trace_id=…
//   CLIENT GET … ms
// SERVER GET /by-hand … ms trace_id=…
// [ 'traceparent' ]
