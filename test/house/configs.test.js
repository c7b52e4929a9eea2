'use strict'

// Everything that users copy is read here like a shell, Docker, a collector and light-trace would read it: docs/backends.md, the compose
// files and examples/fleet. This protects users from a first start that fails or sends nothing. test/fleet runs the collectors,
// test/metrics-servers the rules and the dashboard.

const { existsSync, readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { parse, parseDocument } = require('yaml')
const { resolveOptions } = require('../../lib/config/options')

const EXAMPLES = join(__dirname, '..', '..', 'examples')
const FLEET = join(EXAMPLES, 'fleet')
const KINDS = ['receivers', 'processors', 'exporters', 'connectors']
const COMPOSE = ['compose.yaml', 'compose.clickhouse.yaml']
const read = (name) => parse(readFileSync(join(FLEET, name), 'utf8'), { merge: true })

const page = readFileSync(join(EXAMPLES, '..', 'docs', 'backends.md'), 'utf8')
const blocks = page.split(/^## /m).flatMap((section) => {
  const [title] = section.split('\n')
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => ({ title, variables: variablesIn(text) }))
})

// The endpoint and headers of each block, in order.
const EXPECTED = [
  ['# Your backend', 'https://collector.example/v1/traces', { authorization: 'Bearer YOUR_KEY' }],
  ['Jaeger', 'http://localhost:4318/v1/traces', {}],
  ['Grafana Cloud and Tempo', 'https://otlp-gateway-prod-eu-west-2.grafana.net/otlp/v1/traces', { authorization: 'Basic BASE64_OF_INSTANCE_ID_AND_TOKEN' }],
  ['Grafana Cloud and Tempo', 'http://tempo:4318/v1/traces', {}],
  ['Honeycomb', 'https://api.honeycomb.io/v1/traces', { 'x-honeycomb-team': 'YOUR_API_KEY' }],
  ['Datadog', 'http://datadog-agent:4318/v1/traces', {}],
  ['New Relic', 'https://otlp.nr-data.net/v1/traces', { 'api-key': 'YOUR_LICENSE_KEY' }],
  ['Dynatrace', 'https://your_environment_id.live.dynatrace.com/api/v2/otlp/v1/traces', { authorization: 'Api-Token YOUR_TOKEN' }],
  ['Elastic', 'https://your_project.ingest.eu-west-1.aws.elastic.cloud/v1/traces', { authorization: 'ApiKey YOUR_API_KEY' }],
  ['Elastic', 'https://apm.example:8200/v1/traces', { authorization: 'Bearer YOUR_SECRET_TOKEN' }],
  ['Sentry', 'https://oyour_org.ingest.sentry.io/api/YOUR_PROJECT/integration/otlp/v1/traces', { 'x-sentry-auth': 'sentry sentry_key=YOUR_PUBLIC_KEY' }],
  ['SigNoz', 'https://ingest.eu.signoz.cloud/v1/traces', { 'signoz-ingestion-key': 'YOUR_INGESTION_KEY' }],
  ['SigNoz', 'http://signoz:4318/v1/traces', {}],
  ['Axiom', 'https://api.axiom.co/v1/traces', { authorization: 'Bearer YOUR_API_TOKEN', 'x-axiom-dataset': 'YOUR_DATASET' }],
  ['AWS, Azure and Google Cloud', 'http://localhost:4318/v1/traces', {}]
]

for (const [name, ...overrides] of [['agent.yaml'], ['gateway.yaml'], ['gateway.yaml', 'gateway.clickhouse.yaml']]) {
  test(`${[name, ...overrides].join(' and ')}: pipelines and definitions match in both directions`, async (t) => {
    const config = [name, ...overrides].map(read).reduce(merged)
    const pipelines = Object.values(config.service.pipelines)
    const used = new Set()
    for (const pipeline of pipelines) {
      for (const kind of ['receivers', 'processors', 'exporters']) {
        for (const component of pipeline[kind] ?? []) {
          used.add(component)
          t.ok(component in (config[kind] ?? {}) || component in (config.connectors ?? {}), `${kind}: ${component}`)
        }
      }
    }
    for (const connector of Object.keys(config.connectors ?? {})) {
      for (const end of ['receivers', 'exporters']) t.ok(pipelines.some((pipeline) => pipeline[end].includes(connector)), `${connector} is among the ${end}`)
    }
    const replaced = overrides.length > 0 ? ['otlp_grpc/traces'] : []
    t.same(KINDS.flatMap((kind) => Object.keys(config[kind] ?? {})).filter((component) => !used.has(component)), replaced)
    t.ok(pipelines.length >= 2)
  })
}

test('spans are counted before the tail sampler, without those that represent nothing, and each span that it decides about has a threshold', async (t) => {
  const { service: { pipelines } } = read('gateway.yaml')
  t.same(pipelines['traces/counted'], { receivers: ['otlp'], processors: ['memory_limiter', 'filter/uncounted'], exporters: ['span_metrics'] })
  t.same(pipelines.traces.processors, ['memory_limiter', 'transform/threshold', 'tail_sampling'])
  for (const name of COMPOSE) {
    const { services } = read(name)
    for (const gateway of ['gateway-1', 'gateway-2']) t.ok(services[gateway].command.includes('--feature-gates=processor.tailsamplingprocessor.usetracestate'), `${name}: ${gateway}`)
  }
})

test('the agent sends to the gateways that compose starts, on their port', async (t) => {
  const { services } = read('compose.yaml')
  const { hostnames } = read('agent.yaml').exporters.load_balancing.resolver.static
  t.same(hostnames.map((host) => host.split(':')[0]), Object.keys(services).filter((name) => name.startsWith('gateway')))
  const { endpoint } = read('gateway.yaml').receivers.otlp.protocols.grpc
  for (const host of hostnames) t.equal(host.split(':')[1], endpoint.split(':')[1])
})

test('compose: images have full versions, files in commands are mounted, and hosts are services', async (t) => {
  const [base, more] = COMPOSE.map(read)
  const names = Object.keys(merged(base, more).services)
  for (const service of [base, more].flatMap(({ services }) => Object.values(services))) {
    if (service.image) t.match(service.image, /^[\w./-]+:v?\d+\.\d+\.\d+/)
    for (const mounted of (service.command ?? []).map((word) => /=(\/etc\/.+)$/.exec(word)?.[1]).filter(Boolean)) {
      const volumes = [base, more].flatMap(({ services }) => Object.values(services)).flatMap((each) => each.volumes ?? [])
      t.ok(volumes.some((volume) => volume.split(':')[1] === mounted), `${mounted} is mounted`)
    }
  }
  const texts = ['agent.yaml', 'gateway.yaml', 'gateway.clickhouse.yaml', join('grafana', 'provisioning', 'datasources', 'datasources.yaml')].map((name) => JSON.stringify(read(name))).join()
  const hosts = [...texts.matchAll(/"(?:https?:\/\/|tcp:\/\/)?([a-z][\w-]*):\d{2,}/g)].map(([, host]) => host)
  t.ok(hosts.length >= 8)
  for (const host of hosts) t.ok(names.includes(host), host)
})

test('every compose file of the examples has image versions, loopback ports and existing mounted files', async (t) => {
  const files = readdirSync(EXAMPLES, { recursive: true }).filter((name) => /(?:^|[/\\])compose[\w.]*\.ya?ml$/.test(name) && !name.includes('node_modules'))
  t.equal(files.length, COMPOSE.length + 2)
  for (const file of files) {
    const document = parseDocument(readFileSync(join(EXAMPLES, file), 'utf8'), { merge: true, strict: true, uniqueKeys: true })
    t.same([...document.errors, ...document.warnings], [], file)
    for (const service of Object.values(document.toJS().services)) {
      if (service.image) t.match(service.image, /^[\w./-]+:v?\d+[\w.-]*$/)
      for (const port of service.ports ?? []) t.match(port, /^127\.0\.0\.1:\d+:\d+$/)
      for (const volume of service.volumes ?? []) t.ok(existsSync(join(EXAMPLES, file, '..', volume.split(':')[0])), volume)
    }
  }
})

test('every block of docs/backends.md gives the backend\'s URL and headers, without a warning', async (t) => {
  t.same(blocks.map(({ title }) => title), EXPECTED.map(([title]) => title))
  for (const [index, { title, variables }] of blocks.entries()) {
    const { exporter, warnings } = resolveOptions({}, variables)
    const [, url, headers] = EXPECTED[index]
    t.same(warnings, [], title)
    t.equal(exporter.url, url, title)
    t.same(lowerCased(exporter.headers), headers, title)
  }
})

test('the compose file starts one pinned Jaeger, on the ports in the docs', async (t) => {
  const { services } = parse(readFileSync(join(EXAMPLES, 'collector', 'compose.yml'), 'utf8'))
  t.same(Object.keys(services), ['jaeger'])
  t.match(services.jaeger.image, /^jaegertracing\/jaeger:\d+\.\d+\.\d+$/)
  t.same(services.jaeger.ports, ['127.0.0.1:4318:4318', '127.0.0.1:16686:16686'])
  const { services: more } = parse(readFileSync(join(EXAMPLES, 'postgres-redis', 'compose.yaml'), 'utf8'))
  t.same(more.jaeger, services.jaeger, 'the one of examples/postgres-redis, too')
})

/** Merges like the collector merges its files: maps by key, while lists are replaced. */
function merged (one, other) {
  if (!isMap(one) || !isMap(other)) return other
  return { ...one, ...Object.fromEntries(Object.entries(other).map(([key, value]) => [key, key in one ? merged(one[key], value) : value])) }
}

function isMap (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function variablesIn (text) {
  return Object.fromEntries(text.trim().split('\n').map((line) => /^(OTEL_\w+)=([^\s'"$`\\]+)$/.exec(line).slice(1)))
}

function lowerCased (headers) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
