'use strict'

const { Readable } = require('node:stream')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { picture } = require('../support/picture')
const { connect, signal } = require('../support/raw-client')

const CHUNK = Buffer.alloc(64 * 1024, 'x')

// Returns a client that has received the first part of an answer. The test controls the answer's stream.
async function openStream (t) {
  const open = signal()
  const { collector, port } = await tracedApp(t, {
    routes: (app) => app.get('/file', (request, reply) => {
      const stream = new Readable({ read () {} })
      stream.push('first')
      open.give(stream)
      reply.send(stream)
    })
  })
  const client = (await connect(port)).request('GET', '/file')
  await client.until('first')
  const { value: stream } = await open.promise
  return { collector, client, stream }
}

test('a finished stream is one span that lasts as long as the stream', async (t) => {
  const { collector, client, stream } = await openStream(t)
  const before = performance.timeOrigin + performance.now()
  stream.push('last')
  stream.push(null)
  await client.until('last')
  t.same(await picture(collector), ['GET /file 200'])
  const [span] = await collector.spans()
  t.ok(span.endTime > before, 'it ends after the last byte, not when the handler returns')
  await client.leave()
})

test('a stream that fails before its first byte is an error answer', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes: (app) => app.get('/file', (request, reply) => {
      reply.send(new Readable({ read () { this.destroy(new RangeError('no disk')) } }))
    })
  })
  t.equal((await fetch(`${origin}/file`)).status, 500)
  t.same(await picture(collector), ['GET /file 500 ERROR error.type=RangeError exception=RangeError: no disk'])
})

// F04
test('a stream that fails in the middle ends the request as response_terminated', async (t) => {
  const { collector, client, stream } = await openStream(t)
  stream.destroy(new Error('no disk'))
  await client.closed
  t.same(await picture(collector), ['GET /file 200 ERROR error.type=response_terminated'])
})

test('a stream that fails with ECONNRESET of its source ends the request as response_terminated', async (t) => {
  const { collector, client, stream } = await openStream(t)
  stream.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }))
  await client.closed
  t.same(await picture(collector), ['GET /file 200 ERROR error.type=response_terminated'])
})

test('a web stream and a Response are traced like other streams', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes (app) {
      app.get('/web', (request, reply) => reply.send(new Blob(['a', 'b']).stream()))
      app.get('/response', (request, reply) => reply.send(new Response('x', { status: 202 })))
    }
  })
  await (await fetch(`${origin}/web`)).text()
  await (await fetch(`${origin}/response`)).text()
  t.same(await picture(collector), ['GET /web 200', 'GET /response 202'])
})

for (const [how, leave] of [['politely', (client) => client.leave()], ['with a reset', (client) => client.reset()]]) {
  test(`a client that leaves a stream ${how} ends the request as aborted`, async (t) => {
    const { collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/file', (request, reply) => {
        reply.send(new Readable({ read () { setImmediate(() => this.push(CHUNK)) } }))
      })
    })
    const client = (await connect(port)).request('GET', '/file')
    await client.until('xxxx')
    await leave(client)
    t.same(await picture(collector), ['GET /file 200 ERROR error.type=aborted'])
    t.equal(await collector.tree(), 'SERVER GET /file ERROR error.type=aborted')
  })

  test(`a client that leaves an event stream ${how} ends its span`, async (t) => {
    const { collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/events', (request, reply) => {
        reply.header('content-type', 'text/event-stream; charset=utf-8')
        const stream = new Readable({ read () {} })
        stream.push('data: 1\n\n')
        reply.send(stream)
      })
    })
    const client = (await connect(port)).request('GET', '/events')
    await client.until('data: 1')
    await leave(client)
    t.same(await picture(collector), ['GET /events 200'])
  })

  test(`a client that leaves a hijacked reply ${how} ends its span`, async (t) => {
    const { collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/raw', (request, reply) => {
        reply.hijack()
        reply.raw.writeHead(206)
        reply.raw.write('part')
      })
    })
    const client = (await connect(port)).request('GET', '/raw')
    await client.until('part')
    await leave(client)
    t.same(await picture(collector), ['GET /raw 206'])
  })

  test(`a client that leaves a hijacked reply ${how} before its headers ends the request as aborted`, async (t) => {
    const running = signal()
    const { collector, port } = await tracedApp(t, {
      routes: (app) => app.get('/raw', (request, reply) => {
        reply.hijack()
        running.give()
      })
    })
    const client = (await connect(port)).request('GET', '/raw')
    await running.promise
    await leave(client)
    t.same(await picture(collector), ['GET /raw - ERROR error.type=aborted'])
  })
}

test('an event stream or hijacked reply that the server destroys ends as response_terminated', async (t) => {
  const { collector, port } = await tracedApp(t, {
    routes (app) {
      app.get('/events', (request, reply) => {
        reply.header('content-type', 'text/event-stream')
        const stream = new Readable({ read () {} })
        stream.push('data: 1\n\n')
        reply.send(stream)
        setImmediate(() => stream.destroy(new Error('gone')))
      })
      app.get('/raw', (request, reply) => {
        reply.hijack()
        reply.raw.writeHead(200)
        reply.raw.write('part')
        setImmediate(() => reply.raw.destroy())
      })
    }
  })
  await (await connect(port)).request('GET', '/events').closed
  await (await connect(port)).request('GET', '/raw').closed
  t.same(await picture(collector), ['GET /events 200 ERROR error.type=response_terminated', 'GET /raw 200 ERROR error.type=response_terminated'])
})

// F03
test('a hijacked reply that is ended by hand has one span', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes: (app) => app.get('/raw', (request, reply) => {
      reply.hijack()
      reply.raw.statusCode = 418
      setImmediate(() => reply.raw.end('tea'))
    })
  })
  t.equal(await (await fetch(`${origin}/raw`)).text(), 'tea')
  t.same(await picture(collector), ['GET /raw 418'])
})

test('an event stream that the server ends has one span', async (t) => {
  const { collector, origin } = await tracedApp(t, {
    routes: (app) => app.get('/events', (request, reply) => {
      reply.header('content-type', 'text/event-stream')
      reply.send(Readable.from(['data: 1\n\n', 'data: 2\n\n']))
    })
  })
  await (await fetch(`${origin}/events`)).text()
  t.same(await picture(collector), ['GET /events 200'])
})
