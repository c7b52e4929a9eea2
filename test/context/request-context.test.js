'use strict'

const { Readable } = require('node:stream')
const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { connect, signal } = require('../support/raw-client')

// Returns whether `request` is the current request of the running code.
const isCurrent = (request) => lightTrace.current() !== undefined && lightTrace.current() === request.trace

const BODIES = {
  json: ['application/json', '{"a":1}'],
  text: ['text/plain', 'hello'],
  urlencoded: ['application/x-www-form-urlencoded', 'a=1&b=2'],
  multipart: ['multipart/form-data; boundary=x', '--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'],
  asyncParser: ['application/x-async', 'hello'],
  callbackParser: ['application/x-callback', 'hello'],
  stream: ['application/x-stream', 'hello']
}

async function everywhere (app, seen) {
  const see = (place, request) => { seen.push([place, isCurrent(request)]) }
  await app.register(require('@fastify/multipart'))
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (request, body, done) => {
    done(null, Object.fromEntries(new URLSearchParams(body)))
  })
  app.addContentTypeParser('application/x-async', async (request, payload) => {
    see('async parser', request)
    let text = ''
    for await (const chunk of payload) text += chunk
    see('async parser, after its stream', request)
    return text
  })
  app.addContentTypeParser('application/x-callback', (request, payload, done) => {
    see('callback parser', request)
    let text = ''
    payload.on('data', (chunk) => { text += chunk })
    payload.on('end', () => done(null, text))
  })
  app.addContentTypeParser('application/x-stream', (request, payload, done) => done(null, payload))

  const requestHooks = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse', 'onError']
  for (const name of requestHooks) {
    app.addHook(name, (...args) => {
      see(`${name} by callback`, args[0])
      setImmediate(() => {
        see(`${name} by callback, later`, args[0])
        args.at(-1)()
      })
    })
    // An async hook with the same parameters except the callback.
    app.addHook(name, { onRequest: two, preHandler: two, preValidation: two, onResponse: two, preParsing: three, preSerialization: three, onSend: three, onError: three }[name])
    async function two (request, reply) { await within(request) }
    async function three (request, reply, more) { await within(request) }
    async function within (request) {
      see(`async ${name}`, request)
      await turn()
      see(`async ${name}, later`, request)
    }
  }
  app.setErrorHandler(async (error, request, reply) => {
    see('error handler', request)
    await turn()
    see('error handler, later', request)
    return reply.code(500).send(error.message)
  })
  app.setNotFoundHandler(async (request, reply) => {
    see('not-found handler', request)
    await turn()
    see('not-found handler, later', request)
    return reply.code(404).send('no')
  })
  app.get('/error', async (request) => { await turn(); throw new Error('no') })
  app.get('/callback', (request, reply) => {
    see('callback handler', request)
    setTimeout(() => {
      see('timer', request)
      process.nextTick(() => queueMicrotask(() => {
        see('microtask', request)
        reply.send('ok')
      }))
    }, 1)
  })
  app.get('/stream', async (request, reply) => {
    async function * generate () {
      see('stream generator', request)
      yield 'a'
      await turn()
      see('stream generator, later', request)
      yield 'b'
    }
    return reply.send(Readable.from(generate()))
  })
  app.post('/body', async (request) => {
    see('async handler', request)
    if (request.isMultipart()) {
      for await (const part of request.parts()) {
        see('multipart part', request)
        if (part.file) await part.toBuffer()
        see('multipart part, read', request)
      }
    } else if (typeof request.body?.on === 'function') {
      for await (const chunk of request.body) if (chunk.length > 0) see('body stream', request)
    }
    await turn()
    see('async handler, later', request)
    await Promise.all([1, 2].map(async () => { await turn(); see('parallel', request) }))
    return { ok: true }
  })
}

for (const [name, [type, body]] of Object.entries(BODIES)) {
  for (const split of [false, true]) {
    test(`the request is current everywhere, with a body: ${name}${split ? ', sent late' : ''}`, async (t) => {
      const seen = []
      const arrived = signal()
      const { port } = await tracedApp(t, {
        async routes (app) {
          await everywhere(app, seen)
          app.addHook('preParsing', async () => { arrived.give() })
        }
      })
      const client = await connect(port)
      const head = `POST /body HTTP/1.1\r\nhost: a\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`
      if (split) {
        client.send(head)
        await arrived.promise
        await turn()
        client.send(body.slice(0, 3))
        await turn()
        client.send(body.slice(3))
      } else {
        client.send(head + body)
      }
      await client.until('{"ok":true}')
      await client.leave()
      t.ok(seen.length > 20)
      t.same(seen.filter(([, current]) => !current), [])
      t.equal(lightTrace.current(), undefined)
    })
  }
}

for (const [path, place] of [['/error', 'error handler, later'], ['/nowhere', 'not-found handler, later'], ['/callback', 'microtask'], ['/stream', 'stream generator, later']]) {
  test(`the request is current everywhere: ${path}`, async (t) => {
    const seen = []
    const { app, origin } = await tracedApp(t, { routes: (app) => everywhere(app, seen) })
    await (await fetch(origin + path)).text()
    await app.inject(path)
    t.same(seen.filter(([, current]) => !current), [])
    t.equal(seen.filter(([seenAt]) => seenAt === place).length, 2)
    t.equal(lightTrace.current(), undefined)
  })
}

test('outside of a request nothing is current and nothing throws', async (t) => {
  t.equal(lightTrace.current(), undefined)
  const { app, collector } = await tracedApp(t, { listen: false, routes: (app) => app.get('/', async () => 'ok') })
  t.equal(lightTrace.current(), undefined)
  await app.inject('/')
  t.equal(lightTrace.current(), undefined, 'inject leaves nothing behind')
  await turn()
  t.equal(lightTrace.current(), undefined)
  t.equal(await collector.tree(), 'SERVER GET /')
})

test('code before our hook sees the no-op context, and never another request', async (t) => {
  const seen = []
  const look = (place, request) => { seen.push([place, lightTrace.current(), request?.trace?.traceId]) }
  const { port } = await tracedApp(t, {
    fastify: {
      genReqId: (raw) => { look('genReqId'); return 'id' },
      logger: { level: 'silent' }
    },
    before (app) {
      app.setChildLoggerFactory((logger, bindings, options) => { look('childLoggerFactory'); return logger.child(bindings, options) })
      app.addHook('onRequest', async (request) => { look('earlier hook', request) })
    },
    routes (app) {
      app.get('/', async (request) => { request.trace.set('secret', request.headers.n); await turn(); return 'done' })
      app.post('/', async () => 'done')
    }
  })
  const client = await connect(port)
  for (let n = 0; n < 5; n++) {
    client.request('GET', '/', { headers: { n } })
    if (n % 2 === 0) await client.until('done', n + 1) // the other requests are pipelined
  }
  await client.until('done', 5)
  client.request('POST', '/', { body: 'x', headers: { 'content-type': 'text/plain' } })
  await client.until('done', 6)
  await client.leave()
  t.equal(seen.length, 18)
  t.same(seen.filter(([, current]) => current !== undefined), [])
  t.same(new Set(seen.filter(([place]) => place === 'earlier hook').map(([, , traceId]) => traceId)), new Set(['0'.repeat(32)]))
})

test('a value that is set before our hook is discarded, and the next request does not find it', async (t) => {
  const found = []
  const { app } = await tracedApp(t, {
    listen: false,
    before: (app) => app.addHook('onRequest', async ({ trace, headers }) => {
      found.push([trace.get('user'), trace.store.user])
      trace.set('user', headers.user)
      trace.store.user = headers.user
    }),
    routes: (app) => app.get('/', async ({ trace }) => { found.push([trace.get('user'), trace.store.user]); return 'ok' })
  })
  for (const user of ['ada', 'bob']) await app.inject({ url: '/', headers: { user } })
  t.same(found, Array(4).fill([undefined, undefined]))
})

test('work that continues after the reply reads its own store', async (t) => {
  const late = []
  const { origin, collector } = await tracedApp(t, {
    routes: (app) => app.get('/:n', (request, reply) => {
      request.trace.set('n', request.params.n)
      reply.raw.on('close', () => setImmediate(async () => {
        await turn()
        const current = request.trace
        late.push([request.params.n, current.get('n'), current.traceId === request.trace.traceId])
      }))
      setTimeout(() => {
        const current = lightTrace.current()
        late.push([request.params.n, current.get('n'), current.traceId === request.trace.traceId])
        current.withSpan('late work', () => {})
      }, 30)
      reply.send('ok')
    })
  })
  await (await fetch(`${origin}/1`)).text()
  await (await fetch(`${origin}/2`)).text()
  while (late.length < 4) await turn()
  for (const [n, own, same] of late) {
    t.equal(own, n)
    t.ok(same)
  }
  t.equal(await collector.tree(), 'SERVER GET /:n\n  INTERNAL late work\nSERVER GET /:n\n  INTERNAL late work')
})

test('a request context holds neither request nor reply after the response has closed', async (t) => {
  const kept = []
  const { origin, collector } = await tracedApp(t, { routes: (app) => app.get('/', async (request) => { kept.push(request.trace); return 'ok' }) })
  await (await fetch(origin)).text()
  await collector.spans()
  const [{ span }] = kept
  t.equal(span.reply, null)
  for (const value of Object.values(kept[0])) t.notOk(value?.raw || value?.headers || value?.socket, 'no request, reply or socket')
})

test('an app without a listener, registered in a child, can be closed and created again', async (t) => {
  for (let i = 0; i < 2; i++) {
    const app = Fastify()
    await app.register(async (child) => {
      await child.register(lightTrace, { exporter: 'none', registerGlobals: false })
      child.get('/in', async (request) => ({ current: isCurrent(request) }))
    })
    app.get('/out', async (request) => ({ current: lightTrace.current() === undefined, trace: request.trace === undefined }))
    t.same((await app.inject('/in')).json(), { current: true })
    t.same((await app.inject('/out')).json(), { current: true, trace: true })
    await app.close()
  }
})

test('withSpan passes its function the span and nothing else, and no `this`', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async (request) => request.trace.withSpan('child', function (span) {
      return { hasThis: this !== undefined, count: arguments.length, isChild: span.parentSpanId === request.trace.spanId, isCurrent: isCurrent(request) }
    }))
  })
  t.same((await app.inject('/')).json(), { hasThis: false, count: 1, isChild: true, isCurrent: true })
})
