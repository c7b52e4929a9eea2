'use strict'

// A plain HTTP server that the app under test calls. It answers with the headers that it received.

const http = require('node:http')
const { once } = require('node:events')

/**
 * @param {object} t a tap test: the server is closed at its end
 * @param {(req, res, next) => void} [handler] answers itself, or calls next() for the usual answer
 * @param {object} [listen]
 * @returns {Promise<{ server, origin: string, port: number, seen: object[] }>} `seen`: the headers of each request
 */
async function upstream (t, handler = (req, res, next) => next(), listen = { port: 0, host: '127.0.0.1' }) {
  const seen = []
  const server = http.createServer((req, res) => {
    seen.push(req.headers)
    handler(req, res, () => {
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify(req.headers))
    })
  })
  server.listen(listen)
  await once(server, 'listening')
  t.teardown(() => new Promise((resolve) => {
    server.close(resolve)
    server.closeAllConnections()
  }))
  const { port } = server.address()
  return { server, origin: `http://127.0.0.1:${port}`, port, seen }
}

/** Returns the ids of a traceparent header. */
function carried (headers) {
  const [, traceId, spanId, flags] = headers.traceparent.split('-')
  return { traceId, spanId, flags }
}

module.exports = { upstream, carried }
