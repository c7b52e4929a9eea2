'use strict'

const { test } = require('tap')
const { hintOf } = require('../../lib/export/log')

const hint = (outcome, url) => hintOf({ error: null, status: 200, format: 'protobuf', ...outcome }, new URL(url))

test('a port that is known for something else is named', (t) => {
  t.match(hint({ format: 'html' }, 'http://localhost:16686/v1/traces'), /usually is port 4318.*16686 is Jaeger's page/)
  t.match(hint({ format: 'html' }, 'http://localhost:3000/v1/traces'), /3000 is Grafana's page/)
  t.match(hint({ error: { code: 'EBADMSG' } }, 'http://localhost:4317/v1/traces'), /4318, 4317 is gRPC/)
  t.match(hint({ status: 404 }, 'http://localhost:9411/v1/traces'), /9411 is Zipkin's/)
  t.match(hint({ status: 404 }, 'http://localhost:4318/'), /the path of OTLP for traces usually is \/v1\/traces/)
  t.end()
})

test('nothing is guessed where nothing is known', (t) => {
  t.equal(hint({ status: 404 }, 'http://localhost:4318/v1/traces'), '')
  t.equal(hint({ status: 400 }, 'http://localhost:16686/'), '')
  t.equal(hint({ error: { code: 'ECONNREFUSED' } }, 'http://localhost:4317/'), '')
  t.end()
})
