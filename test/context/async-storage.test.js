'use strict'

// The request's store, with an equivalent of every feature of @fastify/request-context (docs/migration.md).

const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks')
const { execFileSync } = require('node:child_process')
const path = require('node:path')
const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { testing } = require('../support/collector')
const { without } = require('../support/features')
const asyncStorage = require('../../lib/context/async-storage')
const { randomFrom } = require('../support/random')

test('get and set work with and without the request at hand', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    routes (app) {
      app.addHook('onRequest', async (request) => { request.trace.set('user', { id: 7 }) })
      app.get('/', async (request) => {
        lightTrace.current().set('seen', true)
        return { user: lightTrace.current().get('user'), store: request.trace.store, none: request.trace.get('none') ?? 'undefined' }
      })
    }
  })
  t.same((await app.inject('/')).json(), { user: { id: 7 }, store: { user: { id: 7 }, seen: true }, none: 'undefined' })
})

test('store defaults in an object are copied for each request', async (t) => {
  const defaults = { user: 'system', tags: [] }
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { store: defaults },
    routes: (app) => app.get('/:user', async (request) => {
      const before = request.trace.get('user')
      request.trace.set('user', request.params.user)
      return [before, request.trace.get('user')]
    })
  })
  t.same((await app.inject('/a')).json(), ['system', 'a'])
  t.same((await app.inject('/b')).json(), ['system', 'b'])
  t.same(defaults, { user: 'system', tags: [] })
})

test('store defaults can be a function of the request', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { store: (request) => ({ tenant: request.headers['x-tenant'], id: request.id, log: request.log }) },
    routes: (app) => app.get('/', async (request) => ({ ...request.trace.store, log: typeof request.trace.get('log').info }))
  })
  t.match((await app.inject({ url: '/', headers: { 'x-tenant': 'acme' } })).json(), { tenant: 'acme', id: 'req-1', log: 'function' })
})

test('a store function that throws or returns an invalid value leaves an empty store', async (t) => {
  for (const store of [() => { throw new Error('no') }, () => 7, () => null, async () => ({ a: 1 }), async () => { throw new Error('late') }]) {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      fastify: { logger: { level: 'silent' } },
      trace: { store },
      routes: (app) => app.get('/', async (request) => request.trace.store)
    })
    const response = await app.inject('/')
    t.equal(response.statusCode, 200)
    t.same(response.json(), {})
    t.equal(await collector.tree(), 'SERVER GET /')
  }
})

test('keys with a meaning in JavaScript are keys like any other', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async ({ trace }) => {
      const symbol = Symbol('key')
      const before = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', symbol].map((key) => trace.get(key) === undefined)
      trace.set('__proto__', { polluted: true })
      trace.set('constructor', 1)
      trace.set(symbol, 2)
      return { before, proto: trace.get('__proto__'), constructor: trace.get('constructor'), symbol: trace.get(symbol), clean: {}.polluted === undefined && trace.store.polluted === undefined }
    })
  })
  t.same((await app.inject('/')).json(), { before: [true, true, true, true, true], proto: { polluted: true }, constructor: 1, symbol: 2, clean: true })
})

test('ignored, switched-off and disabled requests have their context and store', async (t) => {
  const routes = (app) => {
    const handler = async (request) => {
      await null
      lightTrace.current().set('a', 1)
      return { same: lightTrace.current() === request.trace, a: request.trace.get('a'), tenant: request.trace.get('tenant'), recording: request.trace.span.isRecording() }
    }
    app.get('/off', { config: { trace: false } }, handler)
    app.get('/ignored', handler)
  }
  const expected = { same: true, a: 1, tenant: 'acme', recording: false }
  const trace = { ignore: '/ignored', store: { tenant: 'acme' } }
  const { app, collector } = await tracedApp(t, { listen: false, trace, routes })
  t.same((await app.inject('/off')).json(), expected)
  t.same((await app.inject('/ignored')).json(), expected)
  t.equal(await collector.tree(), '')

  process.env.OTEL_SDK_DISABLED = 'true'
  t.teardown(() => { delete process.env.OTEL_SDK_DISABLED })
  const disabled = await tracedApp(t, { listen: false, trace, routes })
  t.same((await disabled.app.inject('/off')).json(), expected)
  t.equal(await disabled.collector.tree(), '')
})

test('in a test without an app, withRequest makes a store current', { skip: without('testing') }, async (t) => {
  const { withRequest } = testing
  const codeUnderTest = async () => {
    await null
    return lightTrace.current().get('tenant')
  }
  t.equal(lightTrace.current(), undefined)
  t.equal(await withRequest({ tenant: 'acme' }, codeUnderTest), 'acme')
  t.equal(withRequest({}, (trace) => trace.withSpan('x', () => trace.get('none'))), undefined)
  t.same(withRequest({}, (trace) => trace.inject({ a: 1 })), { a: 1 })
  t.equal(lightTrace.current(), undefined)
})

test('a connection keeps no store of a request, whatever Node calls its fields', (t) => {
  const kept = new AsyncLocalStorage()
  const renamed = {
    run: (...args) => kept.run(...args),
    enterWith: (store) => kept.enterWith(store),
    getStore: () => kept.getStore()
  }
  const { call, active } = t.mockRequire('../../lib/context/async-storage', {
    '../../lib/runtime/process-state': { processState: { storage: renamed } }
  })
  const connection = new AsyncResource('connection')
  const seen = []
  connection.runInAsyncScope(() => call('a request', () => seen.push(active())))
  connection.runInAsyncScope(() => seen.push(active()))
  t.same(seen, ['a request', undefined])
  t.end()
})

test('another store that is entered inside withSpan stays entered after it', async (t) => {
  const users = new AsyncLocalStorage()
  for (const sampler of ['always_on', 'always_off']) {
    const { app } = await tracedApp(t, {
      listen: false,
      trace: { sampler },
      routes: (app) => app.get('/', async ({ trace }) => {
        trace.withSpan('authenticate', () => users.enterWith('alice'))
        return { user: users.getStore(), isOwn: lightTrace.current() === trace }
      })
    })
    t.same((await app.inject('/')).json(), { user: 'alice', isOwn: true }, sampler)
  }
})

test('a step leaves all stores as AsyncLocalStorage.run does, whatever is entered inside it', async (t) => {
  const others = [new AsyncLocalStorage(), new AsyncLocalStorage()]
  const reference = new AsyncLocalStorage()
  const ours = { call: asyncStorage.call, read: asyncStorage.active, enter: (value) => asyncStorage.storage.enterWith(value) }
  const nodes = { call: (value, fn, argument) => reference.run(value, fn, argument), read: () => reference.getStore(), enter: (value) => reference.enterWith(value) }
  for (let seed = 1; seed <= 200; seed++) {
    t.same(await seen(ours, seed), await seen(nodes, seed), `seed ${seed}`)
  }

  // Runs the same random program with either implementation. Returns what each place in it read.
  async function seen ({ call, read, enter }, seed) {
    const random = randomFrom(seed)
    const places = []
    const look = () => places.push([read(), ...others.map((other) => other.getStore())])
    const pending = []
    const block = (depth) => {
      for (let n = 0; n < 4; n++) {
        const value = Math.floor(random() * 3)
        const other = others[Math.floor(random() * 2)]
        const kind = Math.floor(random() * (depth === 3 ? 2 : 6))
        if (kind === 1) other.enterWith(value)
        else if (kind === 2 || kind === 3) call(value, block, depth + 1)
        else if (kind === 4) other.run(value, block, depth + 1)
        else if (kind === 5) {
          try {
            call(value, () => { block(depth + 1); throw new Error('no') })
          } catch {}
          pending.push(Promise.resolve().then(look))
        }
        look()
      }
    }
    await new AsyncResource('a program').runInAsyncScope(async () => {
      if (random() < 0.5) others[0].enterWith('a tenant')
      if (random() < 0.5) enter('the request')
      block(0)
      await null
      look()
      await Promise.all(pending)
    })
    return places
  }
})

test('context frames are found where Node has them, so that a step need not copy them, and loading leaves nothing in them', async (t) => {
  t.equal(asyncStorage.hasFrames, !('kResourceStore' in asyncStorage.storage))
  const script = `require(${JSON.stringify(path.join(__dirname, '../..'))})
    const resource = new (require('node:async_hooks').AsyncResource)('of the main module')
    console.log(Object.getOwnPropertySymbols(resource).filter((symbol) => typeof resource[symbol] === 'object').length)`
  t.equal(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }), '0\n')
})
