'use strict'

// The backend behind rotel: receives rotel's exports and returns them by trace, like a backend's query API.

module.exports = { startRecorder }

const http = require('node:http')
const { once } = require('node:events')
const { startSink } = require('../../test/support/otlp-sink')

/**
 * @returns {Promise<{ otlpUrl: string, queryUrl: string, stop: () => Promise<void> }>}
 *   GET <queryUrl>/<trace id>?spans=2&timeoutMs=5000 answers once two spans of that trace have arrived, with all its spans
 *   as JSON (BigInt as a string), or with 504 and the spans that did arrive.
 */
async function startRecorder () {
  const sink = await startSink()
  const server = http.createServer((req, res) => answer(sink, new URL(req.url, 'http://recorder'), res))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    otlpUrl: new URL(sink.url).origin,
    queryUrl: `http://127.0.0.1:${server.address().port}`,
    async stop () {
      server.close()
      server.closeAllConnections()
      await sink.close()
    }
  }
}

async function answer (sink, { pathname, searchParams }, res) {
  const wanted = Number(searchParams.get('spans') ?? 1)
  const ofTrace = () => sink.spans.filter((span) => span.traceId === pathname.slice(1))
  const arrived = await sink.waitFor(() => ofTrace().length >= wanted, Number(searchParams.get('timeoutMs') ?? 5000)).then(() => true, () => false)
  res.writeHead(arrived ? 200 : 504, { 'content-type': 'application/json' })
  res.end(JSON.stringify(ofTrace(), (key, value) => typeof value === 'bigint' ? String(value) : value))
}
