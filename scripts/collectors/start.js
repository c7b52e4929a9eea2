'use strict'

// Runs the collectors as processes on the loopback interface. Only the ports that tests need are chosen. All other listeners get port 0,
// so that any number of collectors can run at the same time.

module.exports = { startJaeger, startRotel }

const { setTimeout: pause } = require('node:timers/promises')
const { start } = require('../run')
const { freePort } = require('../free-port')

const ANY = '127.0.0.1:0'
const READY_MS = 60_000
const ATTEMPTS = 3 // another process can take a free port before the collector listens on it

/** @returns {Promise<{ tracesUrl: string, queryUrl: string, pid: number, stop: () => Promise<void> }>} */
function startJaeger (binary, moreFlags = []) {
  return started('Jaeger', async () => {
    const [otlp, query] = [await freePort(), await freePort()]
    const flags = {
      'collector.otlp.enabled': 'true',
      'collector.otlp.http.host-port': `127.0.0.1:${otlp}`,
      'query.http-server.host-port': `127.0.0.1:${query}`,
      'collector.otlp.grpc.host-port': ANY,
      'collector.grpc-server.host-port': ANY,
      'collector.http-server.host-port': ANY,
      'query.grpc-server.host-port': ANY,
      'admin.http.host-port': ANY,
      'http-server.host-port': ANY,
      'processor.jaeger-binary.server-host-port': ANY,
      'processor.jaeger-compact.server-host-port': ANY,
      'processor.zipkin-compact.server-host-port': ANY,
      'metrics-backend': 'none',
      'log-level': 'error'
    }
    const child = start(binary, [...Object.entries(flags).map(([name, value]) => `--${name}=${value}`), ...moreFlags],
      { env: { ...process.env, SPAN_STORAGE_TYPE: 'memory' } })
    return { child, tracesUrl: `http://127.0.0.1:${otlp}/v1/traces`, queryUrl: `http://127.0.0.1:${query}` }
  })
}

/**
 * @param {string} exportTo the origin of a server to which rotel posts what it decoded, as OTLP
 * @returns {Promise<{ tracesUrl: string, pid: number, stop: () => Promise<void> }>}
 */
function startRotel (binary, exportTo) {
  return started('rotel', async () => {
    const otlp = await freePort()
    const child = start(binary, [
      'start', '--otlp-http-endpoint', `127.0.0.1:${otlp}`, '--otlp-grpc-endpoint', ANY,
      '--exporter', 'otlp', '--otlp-exporter-protocol', 'http', '--otlp-exporter-endpoint', exportTo,
      '--otlp-exporter-compression', 'none', '--batch-timeout', '20ms',
      '--otlp-receiver-metrics-disabled', '--otlp-receiver-logs-disabled'
    ])
    return { child, tracesUrl: `http://127.0.0.1:${otlp}/v1/traces` }
  })
}

async function started (name, attempt) {
  for (let tries = 1; ; tries++) {
    const { child, ...urls } = await attempt()
    const handle = { ...urls, pid: child.pid, stop: child.stop }
    if (await ready(child, urls)) return handle
    await child.stop()
    if (tries === ATTEMPTS) throw new Error(`${name} did not start\n${child.output()}`)
  }
}

async function ready (child, { tracesUrl, queryUrl }) {
  for (const deadline = Date.now() + READY_MS; child.alive() && Date.now() < deadline; await pause(50)) {
    if (await answers(tracesUrl, { method: 'POST', headers: { 'content-type': 'application/x-protobuf' } }) &&
      (!queryUrl || await answers(`${queryUrl}/api/services`))) return child.alive() // if not alive, another process answered
  }
  return false
}

function answers (url, options) {
  return fetch(url, { ...options, signal: AbortSignal.timeout(READY_MS) }).then(async (response) => {
    await response.arrayBuffer()
    return response.ok
  }, () => false)
}
