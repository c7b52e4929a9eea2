// Runs what users of @fastify/request-context rely on with it and with light-trace. Both give the same values.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { fastifyRequestContext, requestContext } from '@fastify/request-context'
import fastify from 'fastify'
import lightTrace from 'light-trace'

const THEIRS = {
  register: (app, defaults) => app.register(fastifyRequestContext, { defaultStoreValues: defaults }),
  get: (key) => requestContext.get(key),
  set: (key, value) => requestContext.set(key, value),
  store: () => requestContext.getStore(),
  of: (request) => request.requestContext
}
const OURS = {
  register: (app, store) => app.register(lightTrace, { store, exporter: 'none' }),
  get: (key) => lightTrace.current()?.get(key),
  set: (key, value) => lightTrace.current()?.set(key, value),
  store: () => lightTrace.current()?.store,
  of: (request) => request.trace
}

for (const [name, contexts] of [['@fastify/request-context', THEIRS], ['light-trace', OURS]]) {
  // Both requests share a connection, where their values could be mixed up.
  const serve = async (t, setUp, defaults) => {
    const app = fastify()
    t.after(() => app.close())
    await contexts.register(app, defaults)
    await setUp(app)
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    return async (path, options) => {
      const response = await fetch(origin + path, options)
      return { status: response.status, body: await response.text() }
    }
  }
  const post = (body) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

  test(`${name}: concurrent requests have separate values`, async (t) => {
    const both = meeting(2)
    const ask = await serve(t, (app) => {
      app.post('/:id', async (request) => {
        contexts.set('id', request.params.id)
        await both()
        await new Promise((resolve) => setImmediate(resolve))
        return [contexts.get('id'), contexts.of(request).get('id'), request.body.id]
      })
    })
    const answers = await Promise.all(['1', '2'].map((id) => ask(`/${id}`, post({ id }))))
    assert.deepEqual(answers.map(({ body }) => JSON.parse(body)), [['1', '1', '1'], ['2', '2', '2']])
  })

  test(`${name}: a value that one stage sets is there in later stages`, async (t) => {
    const seen = []
    const responded = new EventEmitter()
    const ask = await serve(t, (app) => {
      for (const stage of ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'preSerialization', 'onSend', 'onResponse']) {
        app.addHook(stage, async () => {
          contexts.set('stages', [...contexts.get('stages') ?? [], stage])
          if (stage === 'onResponse') {
            seen.push(...contexts.get('stages'))
            responded.emit('done')
          }
        })
      }
      app.post('/', async () => {
        contexts.set('stages', [...contexts.get('stages'), 'handler'])
        return {}
      })
    })
    const done = once(responded, 'done')
    assert.equal((await ask('/', post({}))).status, 200)
    await done
    assert.deepEqual(seen, ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'handler', 'preSerialization', 'onSend', 'onResponse'])
  })

  test(`${name}: a body in several pieces does not end the context`, async (t) => {
    const ask = await serve(t, (app) => {
      app.addHook('onRequest', async () => contexts.set('user', 'ann'))
      app.post('/', async () => contexts.get('user'))
    })
    assert.equal((await ask('/', post({ text: 'x'.repeat(300_000) }))).body, 'ann')
  })

  test(`${name}: an answer without a body has its values until the end`, async (t) => {
    let last
    const ask = await serve(t, (app) => {
      app.addHook('onSend', async () => { last = contexts.get('user') })
      app.delete('/', async (request, reply) => {
        contexts.set('user', 'ann')
        reply.code(204)
      })
    })
    assert.equal((await ask('/', { method: 'DELETE' })).status, 204)
    assert.equal(last, 'ann')
  })

  test(`${name}: values that a request replaces end with it`, async (t) => {
    for (const defaults of [undefined, { user: 'nobody' }, () => ({ user: 'nobody' })]) {
      const ask = await serve(t, (app) => {
        app.get('/read', async () => contexts.get('user') ?? 'unset')
        app.get('/write', async () => {
          contexts.set('user', 'bob')
          return contexts.get('user')
        })
      }, defaults)
      const fresh = defaults === undefined ? 'unset' : 'nobody'
      for (const expected of [['/read', fresh], ['/write', 'bob'], ['/read', fresh]]) assert.equal((await ask(expected[0])).body, expected[1])
    }
  })

  test(`${name}: a function gets each request and makes new values for it`, async (t) => {
    const ask = await serve(t, (app) => app.get('/:id', async (request) => {
      const { list, url } = contexts.store()
      list.push(request.params.id)
      return { list, url }
    }), (request) => ({ list: [], url: request.url }))
    assert.deepEqual(JSON.parse((await ask('/1')).body), { list: ['1'], url: '/1' })
    assert.deepEqual(JSON.parse((await ask('/2')).body), { list: ['2'], url: '/2' })
  })

  test(`${name}: the store has all values`, async (t) => {
    const ask = await serve(t, (app) => app.get('/', async () => {
      contexts.set('more', 1)
      return contexts.store()
    }), { user: 'ann' })
    assert.deepEqual(JSON.parse((await ask('/')).body), { user: 'ann', more: 1 })
  })

  test(`${name}: outside of a request nothing is read, written or thrown`, async (t) => {
    await serve(t, () => {}, { user: 'ann' })
    contexts.set('user', 'bob')
    assert.equal(contexts.get('user'), undefined)
    assert.equal(contexts.store(), undefined)
  })

  test(`${name}: an error handler and a not-found handler have the values`, async (t) => {
    const ask = await serve(t, (app) => {
      app.addHook('onRequest', async () => contexts.set('user', 'ann'))
      app.setErrorHandler((error, request, reply) => reply.code(418).send(`${error.message} ${contexts.get('user')}`))
      app.setNotFoundHandler((request, reply) => reply.code(404).send(contexts.get('user')))
      app.get('/fails', async () => { throw new Error('no') })
    })
    assert.deepEqual(await ask('/fails'), { status: 418, body: 'no ann' })
    assert.deepEqual(await ask('/nothing'), { status: 404, body: 'ann' })
  })

  test(`${name}: a timer, a promise and a stream keep the values`, async (t) => {
    const ask = await serve(t, (app) => app.get('/:id', (request, reply) => {
      contexts.set('id', request.params.id)
      reply.send(Readable.from((async function * () {
        yield contexts.get('id')
        await new Promise((resolve) => setTimeout(resolve, 1))
        yield contexts.get('id')
        yield await Promise.resolve().then(() => contexts.get('id'))
      })()))
    }))
    assert.deepEqual((await Promise.all(['a', 'b'].map((id) => ask(`/${id}`)))).map(({ body }) => body), ['aaa', 'bbb'])
  })
}

test('used together, each keeps its own values', async (t) => {
  const app = fastify()
  t.after(() => app.close())
  await THEIRS.register(app)
  await OURS.register(app)
  app.get('/', async () => {
    THEIRS.set('user', 'theirs')
    OURS.set('user', 'ours')
    await new Promise((resolve) => setImmediate(resolve))
    return [THEIRS.get('user'), OURS.get('user')]
  })
  assert.deepEqual((await app.inject('/')).json(), ['theirs', 'ours'])
})

// Waits until `count` callers have arrived.
function meeting (count) {
  const emitter = new EventEmitter()
  let here = 0
  return async () => {
    if (++here < count) await once(emitter, 'all')
    else emitter.emit('all')
  }
}
