'use strict'

// Code that dispatches a request keeps its own context, however it dispatches, on every version of Node.

const http = require('node:http')
const https = require('node:https')
const { on, once } = require('node:events')
const { test } = require('tap')
const { context, ROOT_CONTEXT } = require('@opentelemetry/api')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { storage, hasFrames } = require('../../lib/context/async-storage')
const { tracedApp } = require('../support/traced-app')
const { makeCertificate } = require('../support/certificate')

const routes = (app) => {
  app.get('/', async (request) => lightTrace.current() === request.trace ? 'own' : 'another')
  app.get('/sync', (request, reply) => { reply.send(lightTrace.current() === request.trace ? 'own' : 'another') })
}

async function listen (t, server) {
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${server.address().port}`
}

const get = (url) => fetch(url).then((response) => response.text())

test('a server of the user\'s own that calls app.routing() keeps its context', async (t) => {
  const { app } = await tracedApp(t, { routes, listen: false, trace: { registerGlobals: true } })
  const after = []
  const url = await listen(t, http.createServer((req, res) => {
    const before = context.active()
    app.routing(req, res)
    after.push(lightTrace.current(), context.active() === before)
  }))
  t.equal(await get(url), 'own')
  t.equal(await get(`${url}/sync`), 'own')
  t.same(after, [undefined, true, undefined, true])
})

test('no request is entered by `run`, which copies the frame twice, whatever dispatches it', async (t) => {
  if (!hasFrames) return t.end()
  const { app, origin } = await tracedApp(t, { routes })
  const { run } = storage
  let entered = 0
  storage.run = function (store, ...rest) {
    if (typeof store?.traceparent === 'string') entered++ // a request's context
    return run.call(this, store, ...rest)
  }
  t.teardown(() => { storage.run = run })
  t.equal(await get(origin), 'own')
  t.equal((await app.inject('/')).payload, 'own')
  app.server.on('request', () => {})
  t.equal(await get(origin), 'own')
  t.equal(entered, 0)
})

test('a loop over on(server, "request") keeps its context', async (t) => {
  const { app, collector } = await tracedApp(t, { routes, listen: false })
  const upstream = http.createServer((req, res) => res.end())
  const upstreamUrl = await listen(t, upstream)
  const server = http.createServer()
  const url = await listen(t, server)
  const controller = new AbortController()
  const seen = []
  const loop = (async () => {
    for await (const [req, res] of on(server, 'request', { signal: controller.signal })) {
      app.routing(req, res)
      seen.push(lightTrace.current())
      await fetch(upstreamUrl) // outside of any request, so it has no span
    }
  })().catch(() => {})
  t.equal(await get(url), 'own')
  t.equal(await get(url), 'own')
  controller.abort()
  await loop
  t.same(seen, [undefined, undefined])
  t.same((await collector.spans()).map(({ kind }) => kind), ['SERVER', 'SERVER'])
})

for (const [what, dispatch] of [
  ['app.routing()', (app, req, res) => app.routing(req, res)],
  ['server.emit("request")', (app, req, res) => app.server.emit('request', req, res)]
]) {
  test(`a batch handler that calls ${what} for each of its parts keeps its context`, async (t) => {
    const { origin } = await tracedApp(t, {
      routes (app) {
        routes(app)
        app.get('/part/:n', (request, reply) => {
          request.trace.set('n', request.params.n)
          reply.send('part')
        })
        app.get('/batch', (request, reply) => {
          const read = []
          for (const n of ['1', '2', '3']) {
            const req = new http.IncomingMessage(request.raw.socket)
            Object.assign(req, { method: 'GET', url: `/part/${n}`, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
            dispatch(app, req, new http.ServerResponse(req))
            read.push(lightTrace.current() === request.trace, lightTrace.current()?.get('n') ?? '')
          }
          reply.send(read)
        })
      }
    })
    t.same(JSON.parse(await get(`${origin}/batch`)), [true, '', true, '', true, ''])
  })

  test(`${what} outside of any request leaves no context behind`, async (t) => {
    const { app } = await tracedApp(t, { routes, listen: false, trace: { registerGlobals: true } })
    for (const url of ['/', '/sync']) {
      const req = new http.IncomingMessage(null)
      Object.assign(req, { method: 'GET', url, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
      dispatch(app, req, new http.ServerResponse(req))
      t.equal(lightTrace.current(), undefined)
      t.equal(context.active().getValue(Symbol.for('any')), ROOT_CONTEXT.getValue(Symbol.for('any')))
    }
  })
}

test('a serverFactory that continues after the handler keeps its context, as do listeners next to Fastify\'s', async (t) => {
  const seen = []
  const look = (who) => seen.push([who, lightTrace.current()])
  const { app, origin } = await tracedApp(t, {
    routes,
    fastify: {
      serverFactory: (handler) => http.createServer((req, res) => {
        handler(req, res)
        look('factory')
      })
    }
  })
  t.equal(await get(origin), 'own')
  app.server.on('request', () => look('listener'))
  t.equal(await get(origin), 'own')
  t.same(seen, [['factory', undefined], ['factory', undefined], ['listener', undefined]])
})

test('a listener next to Fastify\'s own keeps its context', async (t) => {
  const seen = []
  const { app, origin } = await tracedApp(t, { routes })
  t.equal(await get(origin), 'own')
  app.server.on('request', () => seen.push(lightTrace.current()))
  t.equal(await get(origin), 'own')
  t.same(seen, [undefined])
})

test('listeners keep their context when all listeners of the server are replaced', async (t) => {
  const seen = []
  const look = () => seen.push(lightTrace.current())
  const { app, origin } = await tracedApp(t, { routes })
  t.equal(await get(origin), 'own')
  for (const event of app.server.eventNames()) if (event !== 'connection') app.server.removeAllListeners(event)
  app.server.on('request', app.routing)
  t.equal(await get(origin), 'own')
  app.server.on('request', look)
  t.equal(await get(origin), 'own')
  app.server.off('request', look)
  app.server.prependListener('request', look)
  t.equal(await get(origin), 'own')
  t.same(seen, [undefined, undefined])
})

test('the user\'s listener can dispatch a request that waits for 100 Continue', async (t) => {
  const seen = []
  const { app, origin } = await tracedApp(t, { routes })
  app.server.on('checkContinue', (req, res) => {
    res.writeContinue()
    app.server.emit('request', req, res)
    seen.push(lightTrace.current())
  })
  const req = http.get(origin, { headers: { expect: '100-continue' } })
  const [res] = await once(req, 'response')
  res.resume()
  t.equal(res.statusCode, 200)
  t.same(seen, [undefined])
})

test('with the context manager of an SDK, the dispatcher keeps its context, too', async (t) => {
  const { AsyncLocalStorage } = require('node:async_hooks')
  const storage = new AsyncLocalStorage()
  const manager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, fn, thisArg, ...args) => storage.run(active, () => fn.apply(thisArg, args)),
    bind: (active, target) => target,
    enable () { return this },
    disable () { return this }
  }
  context.disable()
  context.setGlobalContextManager(manager)
  t.teardown(() => context.disable())
  const { app } = await tracedApp(t, { routes, listen: false, trace: { registerGlobals: true } })
  const after = []
  const url = await listen(t, http.createServer((req, res) => {
    app.routing(req, res)
    after.push(lightTrace.current(), context.active() === ROOT_CONTEXT)
  }))
  t.equal(await get(url), 'own')
  t.same(after, [undefined, true])
})

test('https and http/2 servers of the user\'s own keep their context', async (t) => {
  const { app } = await tracedApp(t, { routes, listen: false })
  const { key, cert } = makeCertificate()
  const http2 = require('node:http2')
  const seen = []
  const dispatch = (req, res) => {
    app.routing(req, res)
    seen.push(lightTrace.current())
  }
  const server = https.createServer({ key, cert }, dispatch)
  await listen(t, server)
  const [res] = await once(https.get({ port: server.address().port, host: '127.0.0.1', rejectUnauthorized: false, agent: false }), 'response')
  res.resume()
  t.equal(res.statusCode, 200)

  const second = Fastify({ http2: true })
  t.teardown(() => second.close())
  await second.register(lightTrace, { exporter: 'none', registerGlobals: false })
  routes(second)
  await second.ready()
  const h2 = http2.createServer((req, res) => {
    second.routing(req, res)
    seen.push(lightTrace.current())
  })
  h2.listen(0, '127.0.0.1')
  await once(h2, 'listening')
  t.teardown(() => h2.close())
  const session = http2.connect(`http://127.0.0.1:${h2.address().port}`)
  t.teardown(() => session.destroy())
  const stream = session.request({ ':path': '/' })
  const [headers] = await once(stream, 'response')
  t.equal(headers[':status'], 200)
  stream.resume()
  t.same(seen, [undefined, undefined])
})
