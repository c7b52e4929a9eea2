'use strict'

// The cases, as data.
//
// name      the value for --case
// label     the text shown in tables
// setup     the module that builds the server, relative to bench/; it receives `options`
// env       environment of the server process; {sink} is the sink's URL for this case, {down} a URL where nothing listens
// against   the baseline case, measured in the same round; default: 'bare'
// spans     spans per request; { ratio } where sampling is random, { least } where it depends on a rival
// delivers  true: a lost span makes the round invalid; otherwise losses are only counted
// down      true: no collector is running
// route     a name in routes.js; default: hello
// headers   sent with each request
// isFresh   true: each request opens its own connection; 'elsewhere': and each connection comes from a different address
// node      the Node major; default: HEADLINE_NODE
// needs     one or more folders of install.js
// service   'redis' or 'postgresql': a server that the route queries
// minNode   the lowest Node major that it runs on
//
// `seeds`, at the end, lists what npm run bench measures.

const HEADLINE_NODE = 24

const lightTrace = { setup: 'server/setups/light-trace', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}' }, spans: 1, delivers: true }
const bare = { label: 'Fastify', setup: 'server/setups/bare', spans: 0 }
const floor = { label: '+ one AsyncLocalStorage', setup: 'server/setups/als-floor', spans: 0 }
const rival = { needs: 'rivals', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}', OTEL_METRICS_EXPORTER: 'none', OTEL_LOGS_EXPORTER: 'none' } }
const sdk3 = { needs: 'sdk3', minNode: 22 }
const traceparent = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }

// Headers that a request behind a load balancer carries. The placeholders {n}, {t}, {h} and {ip} are described in load/slices.js.
const userAgent = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) client/{n}' }
const fewUserAgents = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) client/{t}' }
const forwarded = { 'x-forwarded-for': '{ip}', 'x-forwarded-proto': 'https', 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) client/1' }
const propagated = {
  ...traceparent,
  tracestate: 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
  baggage: 'userId=alice,serverNode=DF%2028,isProduction=false'
}

const hello = [
  { ...bare, name: 'bare' },
  { ...floor, name: 'als-floor' },
  { ...bare, name: 'bare-kept-tick', label: '+ one record of process.nextTick kept', setup: 'server/setups/bare-kept-tick' },
  { ...floor, name: 'hook-steps', label: '+ a hook', setup: 'server/setups/hook-steps', options: { steps: 1 } },
  { name: 'request-context', label: '+ @fastify/request-context', setup: 'server/setups/request-context', spans: 0 },
  { ...lightTrace, name: 'lighttrace-off', label: 'light-trace, OTEL_SDK_DISABLED', env: { OTEL_SDK_DISABLED: 'true' }, spans: 0 },
  { ...lightTrace, name: 'lighttrace-unsampled', label: 'light-trace, no request sampled', options: { plugin: { sampler: 'always_off' } }, spans: 0 },
  { ...lightTrace, name: 'lighttrace-1', label: 'light-trace, 1 % sampled', options: { plugin: { sampler: 0.01 } }, spans: { ratio: 0.01 } },
  { ...lightTrace, name: 'lighttrace-100', label: 'light-trace, every request' },
  { ...lightTrace, name: 'lighttrace-down', label: 'light-trace, collector down', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{down}' }, delivers: false, down: true },
  // The buffer is so large that it stays less than half full: at this rate the default buffer is half full within a second.
  { ...lightTrace, name: 'lighttrace-down-below-half', label: 'light-trace, collector down, buffer below half', options: { plugin: { buffer: { maxBytes: 2 ** 30 } } }, env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{down}' }, delivers: false, down: true },
  { ...lightTrace, name: 'lighttrace-gzip', label: 'light-trace, gzip', env: { ...lightTrace.env, OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' } },
  { ...lightTrace, name: 'lighttrace-processors', label: 'light-trace through spanProcessors', needs: 'rivals', options: { way: 'spanProcessors' }, delivers: false },
  { ...lightTrace, name: 'lighttrace-beside', label: 'light-trace, every request, a span processor that does nothing beside the exporter', options: { plugin: { exporter: 'otlp' }, isBeside: true } },
  { ...lightTrace, name: 'lighttrace-provider', label: 'light-trace in SDK mode', needs: 'rivals', options: { way: 'tracerProvider' }, delivers: false },
  { ...lightTrace, name: 'lighttrace-keep', label: 'light-trace, 1 % sampled, keep', options: { plugin: { sampler: 0.01, keep: { errors: true, slow: true }, slow: { afterMs: 2000 } } }, spans: { ratio: 0.01 } },
  { ...rival, name: 'sdk2-by-hand', label: 'SDK 2.x by hand', setup: 'server/setups/sdk-by-hand', options: { sdk: 2 }, spans: 1 },
  { ...rival, name: 'fastify-otel', label: '@fastify/otel', setup: 'server/setups/fastify-otel', spans: { least: 1 } },
  { ...rival, name: 'nodesdk-http', label: 'NodeSDK: http + @fastify/otel', setup: 'server/setups/node-sdk', spans: { least: 2 } },
  { ...rival, name: 'nodesdk-auto', label: 'NodeSDK: auto-instrumentations + @fastify/otel', setup: 'server/setups/node-sdk', options: { auto: true }, spans: { least: 2 } },
  { ...rival, name: 'fastify-otel-sdk3', label: '@fastify/otel, SDK 3.x', setup: 'server/setups/fastify-otel', options: { sdk: 3 }, ...sdk3, spans: { least: 1 } },
  { ...rival, name: 'nodesdk-auto-sdk3', label: 'NodeSDK 3.x: auto-instrumentations + @fastify/otel', setup: 'server/setups/node-sdk', options: { sdk: 3, auto: true }, ...sdk3, spans: { least: 2 } },
  { ...bare, name: 'fastify-metrics', label: 'fastify-metrics', setup: 'server/setups/fastify-metrics', needs: 'rivals' },
]

const withBaselineOfTheirOwn = [
  { ...bare, name: 'bare-traceparent', against: 'bare-traceparent', label: 'Fastify, with a traceparent', headers: traceparent },
  { ...lightTrace, name: 'lighttrace-traceparent', label: 'light-trace, with a traceparent', against: 'bare-traceparent', headers: traceparent },
  { ...bare, name: 'bare-logs', against: 'bare-logs', label: 'Fastify, logger on', options: { logger: true } },
  { ...lightTrace, name: 'lighttrace-logs', label: 'light-trace, logger on', against: 'bare-logs', options: { logger: true } },
  { ...bare, name: 'bare-outbound', against: 'bare-outbound', label: 'Fastify, one outbound call', route: 'outbound' },
  { ...lightTrace, name: 'lighttrace-outbound', label: 'light-trace, one outbound call', against: 'bare-outbound', route: 'outbound', spans: 2 },
  { ...bare, name: 'bare-redis', against: 'bare-redis', label: 'Fastify, one Redis GET', route: 'redis', service: 'redis', needs: 'rivals' },
  { ...lightTrace, name: 'lighttrace-redis', label: 'light-trace, one Redis GET', against: 'bare-redis', route: 'redis', service: 'redis', needs: 'rivals', spans: 2 },
  { ...bare, name: 'bare-attributes', against: 'bare-attributes', label: 'Fastify', route: 'attributes' },
  { ...lightTrace, name: 'lighttrace-attributes', label: 'light-trace, twenty attributes and a child span', against: 'bare-attributes', route: 'attributes', spans: 2 }
]

// Requests whose connection, client or route changes from one to the next: rows of npm run bench:instructions.
const asksCaller = ['proxied', 'fresh'] // these get one more case: the floor of any tracer or logger that records the client
const others = [
  { name: 'agents', label: 'another user agent with each request', headers: userAgent },
  { name: 'few-agents', label: 'four user agents in turn', headers: fewUserAgents },
  { name: 'proxied', label: '`trustProxy`, another client with each request', headers: forwarded, options: { fastify: { trustProxy: true } } },
  { name: 'fresh', label: 'a connection for each request', isFresh: true },
  { name: 'addresses', label: 'a connection for each request, from another address each time', isFresh: 'elsewhere' },
  { name: 'hosts', label: 'another host with each request', headers: { Host: 'tenant-{n}.example:3000' } },
  { name: 'many-hosts', label: 'a hundred hosts in turn', headers: { Host: 'tenant-{h}.example:3000' } },
  { name: 'query', label: 'a query', route: 'query' },
  { name: 'parametric', label: 'a parametric route', route: 'parametric' },
  { name: 'propagated', label: 'traceparent, tracestate and baggage', headers: propagated },
  { name: 'missing', label: '404', route: 'missing' },
  { name: 'statuses', label: 'eight statuses in turn', route: 'statuses' },
  { name: 'parameters', label: 'a query with a new name each time', route: 'parameters' },
  { name: 'keys', label: 'an attribute with a new key each time', route: 'keys' },
  { name: 'names', label: 'a child span with a new name each time', route: 'names', spans: 2 },
  { name: 'throws', label: 'a thrown 500', route: 'throws' },
  { name: 'throws-logged', label: 'a thrown 500, logger on', route: 'throws', options: { logger: true } }
].flatMap(({ name, label, ...request }) => [
  { ...bare, ...request, setup: 'server/setups/bare-kept-tick', name: `bare-${name}`, label: `Fastify, ${label}`, against: `bare-${name}`, spans: 0 },
  { ...lightTrace, ...request, name: `lighttrace-${name}`, label: `light-trace, ${label}`, against: `bare-${name}` },
  ...asksCaller.includes(name) ? [{ ...bare, ...request, setup: 'server/setups/asks-caller', name: `asks-${name}`, label: `+ the client's address, ${label}`, against: `bare-${name}` }] : []
])

// The real request, which does what a typical request does: the headline of npm run bench:instructions.
const real = { route: 'checkout', service: 'redis', needs: 'rivals', headers: traceparent }
const realRequest = [
  { ...bare, ...real, name: 'bare-real', label: 'Fastify, a real request', setup: 'server/setups/bare-kept-tick', options: { logger: { isSync: true } } },
  { ...floor, ...real, name: 'floor-real', label: 'The floor of a real request', setup: 'server/setups/real-floor' },
  { ...lightTrace, ...real, name: 'lighttrace-real', label: 'light-trace, a real request', options: { logger: { isSync: true }, plugin: { metrics: true } }, spans: 3 },
  { ...lightTrace, ...real, name: 'lighttrace-real-unsampled', label: 'light-trace, a real request that its caller did not sample', headers: { traceparent: traceparent.traceparent.replace(/01$/, '00') }, options: { logger: { isSync: true }, plugin: { metrics: true, sampler: 0.01 } }, spans: 0 },
  { ...rival, ...real, name: 'stock-real', label: 'NodeSDK with http, @fastify/otel, redis and pino, a real request', setup: 'server/setups/node-sdk', options: { real: true }, env: { ...rival.env, OTEL_METRICS_EXPORTER: 'otlp' }, spans: { least: 3 } }
].map((testCase) => ({ ...testCase, against: 'bare-real' })).concat([
  { name: 'proxied', label: 'behind a proxy, another client each time', headers: { ...forwarded, ...traceparent }, options: { fastify: { trustProxy: true } } },
  { name: 'pg', label: 'a PostgreSQL query instead of the Redis GET', service: 'postgresql' },
  { name: 'pg-texts', label: 'a PostgreSQL query with a new text each time', service: 'postgresql', options: { hasFreshTexts: true } },
  { name: 'fetch', label: 'a fetch instead of the Redis GET', service: undefined, route: 'checkoutFetch', options: { fetches: true } }
].flatMap(({ name, label, options, ...request }) => [
  { ...bare, ...real, ...request, name: `bare-real-${name}`, against: `bare-real-${name}`, label: `Fastify, a real request, ${label}`, setup: 'server/setups/bare-kept-tick', options: { logger: { isSync: true }, ...options } },
  { ...floor, ...real, ...request, name: `floor-real-${name}`, against: `bare-real-${name}`, label: `The floor of a real request, ${label}`, setup: 'server/setups/real-floor', options },
  { ...lightTrace, ...real, ...request, name: `lighttrace-real-${name}`, against: `bare-real-${name}`, label: `light-trace, a real request, ${label}`, options: { logger: { isSync: true }, plugin: { metrics: true }, ...options }, spans: 3 }
]))

// Simulates fifty requests per second. For other rates: npm run bench:growth -- --table rates.
const lightLoad = [
  { ...bare, name: 'bare-light-load', label: 'Fastify, fifty requests a second', options: { work: 'rates' } },
  { ...lightTrace, name: 'lighttrace-light-load', label: 'light-trace, fifty requests a second, with samples and POSTs', options: { work: 'rates', isTraced: true, n: 50 } }
].map((testCase) => ({ ...testCase, setup: 'server/setups/growth', route: 'growth', against: 'bare-light-load' }))

// Part of the cost of a thrown error is reading its stack, which Fastify alone does not do.
const readsStack = { ...bare, name: 'bare-throws-stack', against: 'bare-throws', label: "Fastify, a thrown 500, and a hook that reads the error's stack", setup: 'server/setups/bare-kept-tick', route: 'throws', options: { readsStack: true } }

// Ten log lines per request, and ten debug lines that are only needed if the request fails.
const logLines = [
  { ...bare, name: 'bare-lines', label: 'Fastify, ten log lines', route: 'lines', setup: 'server/setups/bare-kept-tick', options: { logger: { isSync: true } }, against: 'bare-lines' },
  { ...lightTrace, name: 'lighttrace-lines', label: 'light-trace, ten log lines with its ids', route: 'lines', options: { logger: { isSync: true } }, against: 'bare-lines' },
  { ...lightTrace, name: 'lighttrace-lines-exported', label: 'light-trace, ten log lines exported', route: 'lines', options: { logger: { isSync: true }, plugin: { logs: { export: true, maxPerSecond: 1e9 } } }, against: 'bare-lines' },
  { ...rival, name: 'stock-lines-exported', label: 'NodeSDK with http, @fastify/otel and pino, ten log lines exported', route: 'lines', setup: 'server/setups/node-sdk', options: { lines: true }, env: { ...rival.env, OTEL_LOGS_EXPORTER: 'otlp' }, spans: { least: 2 }, against: 'bare-lines' },
  { ...lightTrace, name: 'lighttrace-debug', label: 'light-trace, ten debug lines that are not written', route: 'debug', options: { logger: { isSync: true } }, against: 'lighttrace-debug' },
  { ...lightTrace, name: 'lighttrace-debug-held', label: 'light-trace, ten debug lines held', route: 'debug', options: { logger: { isSync: true }, plugin: { logs: { buffer: 'debug' } } }, against: 'lighttrace-debug' },
  { ...lightTrace, name: 'lighttrace-debug-printed', label: 'light-trace, ten debug lines printed', route: 'debug', options: { logger: { level: 'debug', isSync: true } }, against: 'lighttrace-debug' }
]

const cases = [...hello, ...withBaselineOfTheirOwn, ...others, ...lightLoad, readsStack, ...realRequest, ...logLines]

// The cases that bench/seeds.js measures, by route and Node major. SDK 3 needs Node 22.15.
const seeds = {
  hello: (major) => ['bare', 'als-floor', 'lighttrace-100', ...major < 22 ? ['fastify-otel', 'nodesdk-auto'] : ['fastify-otel-sdk3', 'nodesdk-auto-sdk3']],
  checkout: () => ['bare-real', 'floor-real', 'lighttrace-real', 'stock-real']
}

module.exports = { cases, seeds, others: others.filter(({ name }) => name.startsWith('lighttrace-')).map(({ name }) => name.replace('lighttrace-', '')), asksCaller, HEADLINE_NODE }
