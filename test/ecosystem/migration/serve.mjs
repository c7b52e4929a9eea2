// Serves the thirty requests with a setup, in a separate process.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startCollector } from './collector.mjs'
import { requests, send } from './requests.mjs'

const here = import.meta.dirname
const DEADLINE_MS = 60_000

/**
 * @param {string} setup a file of setups/, loaded before the app
 * @param {object[]} [more] requests after the thirty
 * @returns {Promise<object[]>} for each request: { name, status, body, spans, calls, lines } — the calls that reached the
 *   upstream, and the lines that were logged
 */
export async function serve (setup, more = []) {
  const collector = await startCollector()
  const child = spawn(process.execPath, ['--require', join(here, 'setups', `${setup}.cjs`), join(here, 'app.cjs')], {
    cwd: here, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment(collector.url) }
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS)
  const closed = once(child, 'close')
  const lines = []
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line))
  try {
    const [first] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), closed.then(() => { throw new Error(`${setup} ended:\n${lines.join('\n')}`) })])
    const { origin } = JSON.parse(first)
    const served = []
    for (const request of [...requests, ...more]) {
      const calls = collector.calls.length
      served.push({ ...request, ...await send(origin, request), calls: collector.calls.slice(calls) })
    }
    child.kill('SIGTERM')
    await closed // by then it has sent its spans
    return served.map((request) => ({ ...request, spans: spansOf(request, collector.spans), lines }))
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
    await collector.close()
  }
}

// The request without a caller has the only SERVER span with an unknown trace id. Other spans that a tracer records while the app starts do
// not belong to a request.
function spansOf ({ caller = true, traceId }, spans) {
  if (caller) return spans.filter((span) => span.traceId === traceId)
  const known = new Set(requests.map(({ traceId }) => traceId))
  const served = spans.find((span) => span.kind === 'SERVER' && !known.has(span.traceId))
  return spans.filter((span) => span.traceId === served?.traceId)
}

function environment (url) {
  return {
    UPSTREAM: `${url}/upstream`,
    LIGHT_TRACE_URL: `${url}/light-trace/v1/traces`,
    OTEL_SERVICE_NAME: 'shop',
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_NODE_RESOURCE_DETECTORS: 'none',
    DD_SERVICE: 'shop',
    DD_TRACE_AGENT_URL: url,
    DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
    DD_REMOTE_CONFIGURATION_ENABLED: 'false',
    DD_TRACE_STARTUP_LOGS: 'false'
  }
}
