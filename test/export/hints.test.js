'use strict'

const { test } = require('tap')
const { hintOf } = require('../../lib/export/log')

const hint = (outcome, url) => hintOf({ error: null, status: 200, format: 'protobuf', ...outcome }, new URL(url))

test('a port that belongs to another service is named', (t) => {
  t.match(hint({ format: 'html' }, 'http://localhost:16686/v1/traces'), /usually uses port 4318.*16686 is Jaeger's page/)
  t.match(hint({ format: 'html' }, 'http://localhost:3000/v1/traces'), /3000 is Grafana's page/)
  t.match(hint({ error: { code: 'EBADMSG' } }, 'http://localhost:4317/v1/traces'), /4318; 4317 is gRPC/)
  t.match(hint({ status: 404 }, 'http://localhost:9411/v1/traces'), /9411 is Zipkin's/)
  t.match(hint({ status: 404 }, 'http://localhost:4318/'), /the OTLP path for traces is usually \/v1\/traces/)
  t.end()
})

for (const [what, outcome, url, expected] of [
  ['https: to a port of http:', { error: { code: 'ERR_SSL_WRONG_VERSION_NUMBER' } }, 'https://localhost:4318/v1/traces', /use http: instead of https:\?/],
  ['the same in OpenSSL 1', { error: { code: 'ERR_SSL_PACKET_LENGTH_TOO_LONG' } }, 'https://localhost:4318/v1/traces', /use http:/],
  ['http: to a port of https:', { status: 400, message: 'Client sent an HTTP request to an HTTPS server.' }, 'http://localhost:4318/v1/traces', /use https:/],
  ["gRPC's port", { error: { code: 'EBADMSG' } }, 'http://localhost:4317/v1/traces', /4318; 4317 is gRPC/],
  ['no key', { status: 401 }, 'https://vendor.test/v1/traces', /exporter\.headers or OTEL_EXPORTER_OTLP_HEADERS/],
  ['a wrong key', { status: 403 }, 'https://vendor.test/v1/traces', /exporter\.headers/],
  ['a redirect', { status: 301, format: 'html' }, 'http://vendor.test/v1/traces', /redirects are not followed/],
  ['the path twice', { status: 404 }, 'http://localhost:4318/v1/traces/v1/traces', /has \/v1\/traces twice/],
  ["a vendor's own path", { status: 404 }, 'https://vendor.test/v1/traces', /as in \/otlp\/v1\/traces/]
]) {
  test(`the hint names the fix: ${what}`, async (t) => t.match(hint(outcome, url), expected))
}

test('an unknown failure gets no hint', (t) => {
  t.equal(hint({ status: 400 }, 'http://localhost:16686/'), '')
  t.equal(hint({ error: { code: 'ECONNREFUSED' } }, 'http://localhost:4317/'), '')
  t.end()
})
