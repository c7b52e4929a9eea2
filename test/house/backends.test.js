'use strict'

// docs/backends.md is read as a shell and light-trace would, and the compose file as Docker would.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { parse } = require('yaml')
const { resolveOptions } = require('../../lib/config/options')

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'backends.md'), 'utf8')
const blocks = page.split(/^## /m).flatMap((section) => {
  const [title] = section.split('\n')
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) => ({ title, variables: variablesIn(text) }))
})

// What a backend gets of each block, in their order.
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

test('every block of docs/backends.md gives the URL and the headers that the backend asks for, without a warning', async (t) => {
  t.same(blocks.map(({ title }) => title), EXPECTED.map(([title]) => title))
  for (const [index, { title, variables }] of blocks.entries()) {
    const { exporter, warnings } = resolveOptions({}, variables)
    const [, url, headers] = EXPECTED[index]
    t.same(warnings, [], title)
    t.equal(exporter.url, url, title)
    t.same(lowerCased(exporter.headers), headers, title)
  }
})

test('the compose file starts one pinned Jaeger, on the ports that the docs name', async (t) => {
  const { services } = parse(readFileSync(join(__dirname, '..', '..', 'examples', 'collector', 'compose.yml'), 'utf8'))
  t.same(Object.keys(services), ['jaeger'])
  t.match(services.jaeger.image, /^jaegertracing\/jaeger:\d+\.\d+\.\d+$/)
  t.same(services.jaeger.ports, ['127.0.0.1:4318:4318', '127.0.0.1:16686:16686'])
  const { services: more } = parse(readFileSync(join(__dirname, '..', '..', 'examples', 'postgres-redis', 'compose.yaml'), 'utf8'))
  t.same(more.jaeger, services.jaeger, 'that of examples/postgres-redis too')
})

function variablesIn (text) {
  return Object.fromEntries(text.trim().split('\n').map((line) => /^(OTEL_\w+)=([^\s'"$`\\]+)$/.exec(line).slice(1)))
}

function lowerCased (headers) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
