'use strict'

// Paths are recorded unchanged. An app with secrets in its paths can replace a path in three places.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

const places = {
  'of all routes': [{ attributes: ({ routeOptions }) => routeOptions.url === '/reset/:token' ? { 'url.path': routeOptions.url } : undefined }, {}],
  'of the route': [{}, { config: { trace: { attributes: { 'url.path': '/reset/:token' } } } }],
  'in the handler': [{}, {}, (request) => request.trace.span.setAttribute('url.path', '/reset/:token')]
}

for (const [place, [trace, route, set = () => {}]] of Object.entries(places)) {
  test(`url.path can be replaced by an attribute ${place}`, async (t) => {
    const sink = await startSink(t)
    const { app, collector } = await tracedApp(t, { listen: false, trace, routes })
    const native = await tracedApp(t, { listen: false, trace: { spanProcessors: undefined, exporter: { url: sink.url }, ...trace }, routes })
    function routes (app) {
      app.get('/reset/:token', route, async (request) => { set(request); return 'ok' })
    }
    for (const each of [app, native.app]) await each.inject('/reset/geheim?page=1')
    await native.app.lightTrace.flush()
    for (const [span] of [await collector.spans(), sink.spans]) {
      t.equal(span.attributes['url.path'], '/reset/:token')
      t.equal(span.attributes['url.query'], 'page=1')
      t.notMatch(JSON.stringify([span.name, span.attributes]), /geheim/)
    }
  })
}
