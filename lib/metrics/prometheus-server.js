'use strict'

// OTEL_METRICS_EXPORTER=prometheus: a server of its own, for /metrics alone.

const { createServer } = require('node:http')
const { pipeline } = require('node:stream')

/**
 * @param {{ host: string, port: number }} address
 * @param {{ scrape (accept: string): Promise<{ type: string, body: Readable }> }} metrics
 * @param {Report} report
 * @returns {() => void} what ends it
 */
function startPrometheusServer ({ host, port }, metrics, report) {
  const server = createServer((request, response) => {
    const [path] = request.url.split('?')
    if (path !== '/metrics' || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(404).end()
      return
    }
    metrics.scrape(request.headers.accept).then(({ type, body }) => {
      response.writeHead(200, { 'content-type': type })
      pipeline(body, response, () => {}) // a scraper that leaves is no error
    }, () => response.writeHead(500).end())
  })
  server.on('error', (error) => report.once('LT_WARN_METRICS_PORT', `metrics are not served on ${host}:${port}: ${error.message}; OTEL_EXPORTER_PROMETHEUS_PORT sets the port`))
  server.listen(port, host)
  server.unref() // it is no reason to live
  return () => {
    server.close()
    server.closeAllConnections()
  }
}

module.exports = { startPrometheusServer }
