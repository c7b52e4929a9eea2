'use strict'

// A collector that says back what was sent to it: neither the log nor stats() quotes it.

const { test } = require('tap')
const { tracedApp } = require('../../support/traced-app')
const { startSink } = require('../../support/otlp-sink')

const KEY = 'k3y-5ecret-0123456789'
const ANSWERS = {
  'a 401 in plain text': { status: 401, headers: { 'content-type': 'text/plain' }, body: `invalid key ${KEY}` },
  'a 400 in JSON': { status: 400, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message: `unknown Bearer ${KEY}` }) },
  'a 403 with the password of the URL': { status: 403, headers: { 'content-type': 'text/plain' }, body: 'wrong: p4ssword-of-url' },
  'a partial success': {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ partialSuccess: { rejectedSpans: 1, errorMessage: `not for ${KEY}` } })
  }
}

for (const [name, answer] of Object.entries(ANSWERS)) {
  test(`${name} is quoted without the values that were sent`, async (t) => {
    const sink = await startSink(t)
    sink.respond = () => answer
    const lines = []
    const stream = { write: (line) => lines.push(line) }
    const url = sink.url.replace('http://', 'http://user:p4ssword-of-url@')
    const { app } = await tracedApp(t, {
      fastify: { logger: { level: 'warn', stream } },
      trace: { spanProcessors: undefined, exporter: { url, headers: { 'x-api-key': `Bearer ${KEY}` } } }
    })
    await app.inject('/')
    await app.lightTrace.flush()
    const said = lines.join('') + JSON.stringify(app.lightTrace.stats())
    t.match(said, /\*{10}/)
    t.notMatch(said, /k3y|5ecret|p4ss/)
  })
}
