'use strict'

// The attributes of the route and of the connection are copied from two templates. Here, routes repeat and alternate on one connection.

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

test('on one connection with repeated and alternating routes, each span has its own route and caller', async (t) => {
  const routes = (app) => {
    for (const path of ['/a', '/b', '/c']) app.get(path, async () => 'ok')
    app.get('/users/:id', async () => 'ok')
  }
  const { app, collector } = await tracedApp(t, { routes })
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const paths = ['/a', '/a', '/a', '/b', '/b', '/b', '/a', '/c', '/a', '/c', '/c', '/c', '/users/1', '/users/2', '/users/3', '/a', '/a', '/a', '/b', '/b', '/b', '/c', '/c', '/c', '/a', '/a', '/a']
  for (const [i, path] of paths.entries()) await get(agent, app.server.address().port, path, i % 2 === 0 ? undefined : traceparentOf(i))
  const spans = await collector.spans()
  t.same(spans.map(({ attributes }) => attributes['url.path']), paths)
  t.same(spans.map(({ name }) => name), paths.map((path) => `GET ${path.replace(/\d/, ':id')}`))
  t.same(spans.map(({ parentSpanId }) => parentSpanId || undefined), paths.map((_, i) => i % 2 === 0 ? undefined : traceparentOf(i).slice(36, 52)))
  t.equal(new Set(spans.map(({ attributes }) => attributes['network.peer.port'])).size, 1)
})

function traceparentOf (i) {
  return `00-${String(i + 1).padStart(32, '0')}-${String(i + 1).padStart(16, '0')}-01`
}

function get (agent, port, path, traceparent) {
  return new Promise((resolve, reject) => {
    const headers = traceparent === undefined ? {} : { traceparent }
    http.get({ host: '127.0.0.1', port, path, agent, headers }, (response) => response.resume().on('end', resolve)).on('error', reject)
  })
}
