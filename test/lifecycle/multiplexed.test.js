'use strict'

// HTTP/2: many requests at once on one connection, each of which ends by itself.

const { test } = require('tap')
const http2 = require('node:http2')
const { once } = require('node:events')
const { tracedApp } = require('../support/traced-app')
const { signal } = require('../support/raw-client')

test('a response that ends leaves the others of its connection as they are', async (t) => {
  const running = { first: signal(), second: signal() }
  const { app, collector, origin } = await tracedApp(t, {
    fastify: { http2: true },
    routes (app) {
      app.get('/fast', async () => 'ok')
      app.get('/:name', (request, reply) => { running[request.params.name].give(reply) })
    }
  })
  const client = http2.connect(origin)
  t.teardown(() => client.destroy())

  const first = client.request({ ':path': '/first' })
  const { value: firstReply } = await running.first.promise
  const second = client.request({ ':path': '/second' })
  const { value: secondReply } = await running.second.promise
  firstReply.send('ok')
  await whole(first)
  // One more round trip, so that whatever the first one's close has started is over.
  await whole(client.request({ ':path': '/fast' }))
  secondReply.send('ok')
  await whole(second)
  await app.close()
  t.equal(await collector.tree(), 'SERVER GET /:name\nSERVER GET /:name\nSERVER GET /fast')
  for (const { attributes } of await collector.spans()) t.equal(attributes['http.response.status_code'], 200)
})

async function whole (stream) {
  stream.resume()
  await once(stream, 'close')
}
