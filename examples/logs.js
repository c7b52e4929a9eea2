'use strict'

// Lines of `request.log` contain trace_id, span_id and trace_flags, including Fastify's own "request completed".
// "incoming request" is written before any hook runs, so it has none of them.

const { Writable } = require('node:stream')
const Fastify = require('fastify')
const lightTrace = require('light-trace')

const stream = new Writable({
  write (line, encoding, done) {
    const { reqId, msg, trace_id: traceId, span_id: spanId, trace_flags: flags } = JSON.parse(line)
    if (reqId !== undefined) console.log(msg, traceId === undefined ? 'without ids' : `${traceId.length} ${spanId.length} ${flags}`)
    done()
  }
})

async function main () {
  const app = Fastify({ logger: { stream } })
  await app.register(lightTrace, { exporter: 'none' }) // logs: false turns this off
  app.get('/', async (request) => {
    request.log.info('in the handler')
    return 'ok'
  })
  await app.inject('/')
  await app.close()
}

main()

// Prints:
// incoming request without ids
// in the handler 32 16 03
// request completed 32 16 03
