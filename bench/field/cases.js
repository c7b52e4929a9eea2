'use strict'

// What a user might pick instead, as data: see ../cases.js for the fields. Every span goes to the same
// sink. All differences are to Fastify bare on the same route.

const { cases: ownCases } = require('../cases')

const { env } = ownCases.find(({ name }) => name === 'sdk2-by-hand')
const lightTrace = { setup: 'server/setups/light-trace', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}' }, spans: 1, delivers: true }
const bare = { setup: 'server/setups/bare', spans: 0 }

const SERVERS = [
  { ...bare, name: 'fastify', label: 'Fastify' },
  { ...lightTrace, name: 'fastify-lighttrace', label: 'Fastify + light-trace' },
  { ...bare, name: 'fastify-logger', label: 'Fastify, logger on', options: { logger: true } },
  { ...lightTrace, name: 'fastify-logger-lighttrace', label: 'Fastify, logger on + light-trace', options: { logger: true } },
  { setup: 'field/setups/node-http', name: 'node-http', label: 'node:http', spans: 0 },
  { setup: 'field/setups/node-http', name: 'node-http-als', label: 'node:http + one AsyncLocalStorage', options: { storage: true }, spans: 0 },
  { setup: 'field/setups/node-http', name: 'node-http-otel', label: 'node:http + NodeSDK, http', options: { traced: true }, needs: 'rivals', env, spans: 1, routeless: true },
  { setup: 'field/setups/express', name: 'express', label: 'Express 5', needs: 'field', spans: 0 },
  { setup: 'field/setups/express', name: 'express-otel', label: 'Express 5 + NodeSDK, http and express', options: { traced: true }, needs: ['field', 'rivals'], env, spans: { least: 1 } },
  { setup: 'field/setups/elysia', name: 'elysia-bun', label: 'Elysia on Bun', runtime: 'bun', needs: 'field', spans: 0 },
  { setup: 'field/setups/elysia', name: 'elysia-bun-otel', label: 'Elysia on Bun + @elysiajs/opentelemetry', runtime: 'bun', options: { traced: true }, needs: 'field', env, spans: { least: 1 } },
  { setup: 'field/setups/deno', name: 'deno', label: 'Deno.serve', runtime: 'deno', needs: 'field', spans: 0 },
  { setup: 'field/setups/deno', name: 'deno-otel', label: 'Deno.serve + its own tracing', runtime: 'deno', options: { traced: true }, needs: 'field', env: { OTEL_DENO: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}', OTEL_METRICS_EXPORTER: 'none', OTEL_DENO_CONSOLE: 'ignore', OTEL_BSP_SCHEDULE_DELAY: '500' }, spans: { least: 1 }, routeless: true, countedAtSink: true },
  { setup: 'field/setups/fastify-metrics', name: 'fastify-metrics', label: 'Fastify + fastify-metrics (no spans)', needs: 'rivals', spans: 0 },
  { setup: 'field/setups/cluster', name: 'fastify-cluster', label: 'Fastify in a cluster, on the cores of the load too', options: { worker: { setup: bare.setup, options: {} } }, manyProcesses: true, spans: 0 },
  { setup: 'field/setups/cluster', name: 'fastify-cluster-lighttrace', label: 'Fastify in a cluster, on the cores of the load too + light-trace', options: { worker: { setup: lightTrace.setup, options: {} } }, manyProcesses: true, env: lightTrace.env, spans: 1, delivers: true }
]

const ROUTES = { hello: 'JSON', text: 'text', echo: 'echo-body' }

const onRoutes = Object.keys(ROUTES).flatMap((route) =>
  SERVERS.map((server) => ({ ...server, name: `${server.name}-${route}`, against: `fastify-${route}`, route, sets: ['field'] })))

// Two hundred awaits: where AsyncLocalStorage rests on async_hooks each costs something.
const AWAIT_NODES = [20, 22, 24, 26]
const promiseHeavy = AWAIT_NODES.flatMap((node) => [
  { ...bare, name: `bare-awaits@${node}`, label: 'Fastify, 200 awaits' },
  { name: `als-awaits@${node}`, label: '+ one AsyncLocalStorage', setup: 'server/setups/als-floor', spans: 0 },
  { ...lightTrace, name: `lighttrace-awaits@${node}`, label: '+ light-trace' }
].map((testCase) => ({ ...testCase, against: `bare-awaits@${node}`, route: 'awaits', node, sets: ['field'] })))

module.exports = { cases: [...onRoutes, ...promiseHeavy], SERVERS, ROUTES, AWAIT_NODES }
