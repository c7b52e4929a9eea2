'use strict'

// Places where Node itself loses the context. docs/context.md lists them, and how `run` and `bind` restore it.

const { readFileSync } = require('node:fs')
const { EventEmitter } = require('node:events')
const { join } = require('node:path')
const { test } = require('tap')
const lightTrace = require('../..')
const { tracedApp } = require('../support/traced-app')
const { connect, signal } = require('../support/raw-client')

// Returns what `current()` was, whether request.trace was the request's own, and whether run() restored the context.
function look (request, own) {
  return {
    current: lightTrace.current(),
    own: request.trace === own && own.traceId !== '0'.repeat(32),
    mended: request.trace.run(() => lightTrace.current()) === own
  }
}

const LOST = { current: undefined, own: true, mended: true }

const PLACES = {
  async onRequestAbort (t) {
    const running = signal()
    const aborted = signal()
    const { port } = await tracedApp(t, {
      routes (app) {
        let own
        app.addHook('onRequestAbort', async (request) => { aborted.give(look(request, own)) })
        app.get('/', (request) => { own = request.trace; running.give() })
      }
    })
    const client = (await connect(port)).request('GET', '/')
    await running.promise
    await client.leave()
    return (await aborted.promise).value
  },

  async onTimeout (t) {
    const running = signal()
    const timedOut = signal()
    const { port } = await tracedApp(t, {
      fastify: { connectionTimeout: 60_000 },
      routes (app) {
        let own
        app.addHook('onTimeout', async (request) => { timedOut.give(look(request, own)) })
        app.get('/', (request) => {
          own = request.trace
          running.give(request.raw.socket)
        })
      }
    })
    const client = (await connect(port)).request('GET', '/')
    const { value: socket } = await running.promise
    socket.setTimeout(1) // shortened only now: on a busy machine it would be over before the request is read
    await client.closed
    return (await timedOut.promise).value
  },

  async 'stream events of a content type parser, before done()' (t) {
    const parsing = signal()
    const found = signal()
    const { port } = await tracedApp(t, {
      routes (app) {
        app.addContentTypeParser('text/x', (request, payload, done) => {
          const own = request.trace
          parsing.give()
          payload.on('data', () => {}).on('end', () => {
            found.give(look(request, own))
            done(null, 'x')
          })
        })
        app.post('/', async () => 'done')
      }
    })
    await sendLate(port, parsing)
    return (await found.promise).value
  },

  async 'a content type parser with parseAs, before done()' (t) {
    const parsing = signal()
    const found = signal()
    const { port } = await tracedApp(t, {
      routes (app) {
        let own
        app.addHook('preParsing', async (request) => { own = request.trace; parsing.give() })
        app.addContentTypeParser('text/x', { parseAs: 'string' }, (request, body, done) => {
          found.give(look(request, own))
          done(null, body)
        })
        app.post('/', async () => 'done')
      }
    })
    await sendLate(port, parsing)
    return (await found.promise).value
  },

  async "onSend and onResponse hooks, if the reply is sent from a callback without the request's context" (t) {
    const foreign = new EventEmitter() // a pool or a queue: its callbacks run in the context of the code that emits
    const waiting = signal()
    const found = signal()
    const { app } = await tracedApp(t, {
      listen: false,
      routes (app) {
        let own
        app.addHook('onSend', async (request) => { found.give(look(request, own)) })
        app.get('/', (request, reply) => {
          own = request.trace
          foreign.once('ready', () => reply.send('ok'))
          waiting.give()
        })
      }
    })
    const answer = app.inject('/').then((response) => response.body)
    await waiting.promise
    foreign.emit('ready')
    t.equal(await answer, 'ok')
    return (await found.promise).value
  },

  async "listeners of the raw response's close event" (t) {
    const running = signal()
    const found = signal()
    const { port } = await tracedApp(t, {
      routes (app) {
        app.get('/', (request, reply) => {
          const own = request.trace
          reply.raw.on('close', () => found.give(look(request, own)))
          running.give()
        })
      }
    })
    const client = (await connect(port)).request('GET', '/')
    await running.promise
    await client.leave()
    return (await found.promise).value
  }
}

for (const [place, findOut] of Object.entries(PLACES)) {
  // F14
  test(`${place}: request.trace works, current() is undefined, run restores it`, async (t) => {
    t.same(await findOut(t), LOST)
  })
}

test('docs/context.md lists each of these places', (t) => {
  const listed = readFileSync(join(__dirname, '../../docs/context.md'), 'utf8').replaceAll('`', '')
  for (const place of Object.keys(PLACES)) t.ok(listed.includes(place), place)
  t.end()
})

test('bind runs a foreign callback in the request\'s context', async (t) => {
  const foreign = new EventEmitter()
  const waiting = signal()
  const seen = []
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes (app) {
      app.addHook('onSend', async (request) => { seen.push(lightTrace.current() === request.trace) })
      app.get('/', (request, reply) => {
        foreign.once('ready', request.trace.bind(function (value) {
          seen.push(lightTrace.current() === request.trace, this === foreign, value)
          request.trace.withSpan('mended', () => {})
          reply.send('ok')
        }))
        waiting.give()
      })
    }
  })
  const answer = app.inject('/').then((response) => response.body)
  await waiting.promise
  foreign.emit('ready', 7)
  await answer
  t.same(seen, [true, true, 7, true])
  t.equal(await collector.tree(), 'SERVER GET /\n  INTERNAL mended')
})

test('bind and run keep the active child span', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async (request) => {
      let bound
      request.trace.withSpan('outer', () => {
        bound = request.trace.bind(() => request.trace.withSpan('bound inside', () => {}))
        request.trace.run(() => request.trace.withSpan('run inside', () => {}))
      })
      bound()
      return 'ok'
    })
  })
  await app.inject('/')
  t.equal(await collector.tree(), [
    'SERVER GET /', '  INTERNAL outer', '    INTERNAL run inside', '    INTERNAL bound inside'
  ].join('\n'))
})

test('run passes on arguments, result and errors', async (t) => {
  const { app } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async (request) => {
      t.equal(request.trace.run((a, b) => a + b, 1, 2), 3)
      t.throws(() => request.trace.run(() => { throw new RangeError('through') }), RangeError)
      t.equal(await request.trace.run(async () => { await null; return lightTrace.current() }), request.trace)
      return 'ok'
    })
  })
  t.equal((await app.inject('/')).statusCode, 200)
})

async function sendLate (port, arrived) {
  const client = (await connect(port)).send('POST / HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\ncontent-length: 5\r\n\r\n')
  await arrived.promise
  client.send('hello')
  await client.until('done')
  await client.leave()
}
