'use strict'

// A secret in the wrong option or variable: no part of it appears in a message.

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { describeValue } = require('../../lib/config/checks')
const lightTrace = require('../..')

const SECRETS = [
  'sk_live_4eC39HqLyjWDarjtT1zdp7dc', 'AKIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN', 'dXNlcjpwYXNzd29yZA==', '5f4dcc3b5aa765d61d8327deb882cf99',
  '0b0c1f1e-8d5c-4f4e-9a53-6c5d2a7e9b11', 'Bearer opensesame', 'Basic opensesame', 'https://user:opensesame@collector', 'http://collector/?apikey=opensesame',
  'x-api-key=opensesame', 'password: opensesame', 'glpat-aB3dE5fG7hJ9kL1mN3pQ', '4111111111111111', 'xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOHBrzqqgy'
]
const VARIABLES = ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_EXPORTER', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_PROTOCOL', 'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_SDK_DISABLED', 'OTEL_PROPAGATORS', 'OTEL_FASTIFY_IGNORE_PATHS', 'OTEL_BSP_MAX_QUEUE_SIZE', 'OTEL_LOG_LEVEL', 'OTEL_RESOURCE_ATTRIBUTES']
const OPTIONS = [(value) => value, ...['resource', 'exporter', 'sampler', 'keep', 'ignore', 'store', 'requestHeaders', 'redactQuery', 'metrics', 'closeTimeoutMs', 'outbound'].map((name) => (value) => ({ [name]: value })),
  ...['url', 'headers', 'compression', 'timeoutMs', 'ca', 'insecureHeaders'].map((name) => (value) => ({ exporter: { [name]: value } }))]

/** Returns all messages about these options and variables. */
function said (options, variables) {
  try {
    const { warnings, news } = resolveOptions(options, variables)
    return [...warnings.map(({ message }) => message), ...news].join('\n')
  } catch ({ message }) {
    return message
  }
}

function isIn (secret, text) {
  return text.includes('opensesame') || Array.from({ length: secret.length - 11 }, (_, at) => secret.slice(at, at + 12)).some((piece) => text.includes(piece))
}

for (const secret of SECRETS) {
  test(`no message quotes ${secret}`, async (t) => {
    for (const name of VARIABLES) t.notOk(isIn(secret, said({}, { [name]: secret })), name)
    for (const make of OPTIONS) t.notOk(isIn(secret, said(make(secret), {})), JSON.stringify(make('')))
    try {
      lightTrace.traceClient(secret)
    } catch ({ message }) {
      t.notOk(isIn(secret, message), 'traceClient')
    }
  })
}

test('words, numbers, paths and addresses are quoted', async (t) => {
  for (const text of ['', 'shop', 'onReady', 'CLIENT!', '1s', '10%', '0.1', 'a=b', 'x-tenant', 'parentbased_traceidratio', 'localhost:4318', 'http://otel-collector.svc:4318/v1/traces', '/users/:id', 'b3multi', 'UTF8', 'Europe/Zurich', '192.168.0.1']) {
    t.equal(describeValue(text), `'${text}'`)
  }
  t.equal(describeValue('dXNlcjpwYXNz'), 'a string of 12 characters, which is not shown')
})
