'use strict'

// The application's `redactQuery` runs before the span is written, because it may end other spans and send them.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

for (const [what, options] of [
  ['a span written by its template', {}],
  ['a span written as a whole', { limits: { attributes: 9 } }],
  ['a span that is longer than a chunk', { buffer: { maxBytes: 65536 } }]
]) {
  for (const flushes of [false, true]) {
    test(`redactQuery can end its own spans${flushes ? ' and flushes' : ''}: ${what}`, async (t) => {
      let request = null
      const { app, collector, origin } = await tracedApp(t, {
        trace: {
          ...options,
          redactQuery (name) {
            request?.trace.withSpan('asked', (span) => span.setAttributes({ user: 'inner', size: 'x'.repeat(300) }))
            if (flushes) app.lightTrace.flush()
            return name === 'secret'
          }
        },
        routes (app) {
          app.get('/:id', async (given) => {
            request = given
            request.trace.span.setAttributes({ user: `outer ${given.params.id}`, size: 'y'.repeat(what.includes('longer') ? 20_000 : 10) })
            return 'ok'
          })
        }
      })
      for (let i = 0; i < 3; i++) await (await fetch(`${origin}/${i}?secret=hidden&page=${i}`)).text()
      const spans = await collector.spans()
      const servers = spans.filter(({ name }) => name === 'GET /:id')
      t.same(servers.map(({ attributes }) => attributes['url.query']).sort(), [0, 1, 2].map((i) => `secret=REDACTED&page=${i}`))
      t.same(servers.map(({ attributes }) => attributes['url.path']).sort(), ['/0', '/1', '/2'])
      const asked = spans.filter(({ name }) => name === 'asked')
      t.equal(asked.length, 6, 'once for each name in each query')
      t.ok(asked.every(({ attributes }) => attributes.user === 'inner'))
    })
  }
}
