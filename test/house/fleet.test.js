'use strict'

// The files of examples/fleet fit together. What the collectors do with them is a matter of test/fleet, and the
// rules and the dashboard one of test/metrics-servers.

const { existsSync, readdirSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { parse, parseDocument } = require('yaml')

const EXAMPLES = join(__dirname, '..', '..', 'examples')
const FLEET = join(EXAMPLES, 'fleet')
const KINDS = ['receivers', 'processors', 'exporters', 'connectors']
const COMPOSE = ['compose.yaml', 'compose.clickhouse.yaml']
const read = (name) => parse(readFileSync(join(FLEET, name), 'utf8'), { merge: true })

for (const [name, ...overrides] of [['agent.yaml'], ['gateway.yaml'], ['gateway.yaml', 'gateway.clickhouse.yaml']]) {
  test(`${[name, ...overrides].join(' and ')}: a pipeline names what is defined, and what is defined is in a pipeline`, async (t) => {
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

test('spans are counted before the tail sampler, without those that stand for nothing, and each that it decides about has a threshold', async (t) => {
  const { service: { pipelines } } = read('gateway.yaml')
  t.same(pipelines['traces/counted'], { receivers: ['otlp'], processors: ['memory_limiter', 'filter/uncounted'], exporters: ['span_metrics'] })
  t.same(pipelines.traces.processors, ['memory_limiter', 'transform/threshold', 'tail_sampling'])
  for (const name of COMPOSE) {
    const { services } = read(name)
    for (const gateway of ['gateway-1', 'gateway-2']) t.ok(services[gateway].command.includes('--feature-gates=processor.tailsamplingprocessor.usetracestate'), `${name}: ${gateway}`)
  }
})

test('the agent sends to the gateways that compose starts, on the port on which they listen', async (t) => {
  const { services } = read('compose.yaml')
  const { hostnames } = read('agent.yaml').exporters.load_balancing.resolver.static
  t.same(hostnames.map((host) => host.split(':')[0]), Object.keys(services).filter((name) => name.startsWith('gateway')))
  const { endpoint } = read('gateway.yaml').receivers.otlp.protocols.grpc
  for (const host of hostnames) t.equal(host.split(':')[1], endpoint.split(':')[1])
})

test('compose: images have whole versions, what a command names is mounted, hosts are services', async (t) => {
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

test('every compose file of the examples: images have versions, ports are of the loopback, files that are mounted exist', async (t) => {
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

/** As the collector merges its files: maps by their keys, and lists replaced. */
function merged (one, other) {
  if (!isMap(one) || !isMap(other)) return other
  return { ...one, ...Object.fromEntries(Object.entries(other).map(([key, value]) => [key, key in one ? merged(one[key], value) : value])) }
}

function isMap (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
