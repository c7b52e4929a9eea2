'use strict'

// Requests that Fastify creates with its own class, without the application's decorators.

const { readFileSync } = require('node:fs')
const http2 = require('node:http2')
const { once } = require('node:events')
const { test } = require('tap')
const Fastify = require('fastify')
const { tracedApp } = require('../support/traced-app')

// The first versions of Fastify 5 keep the function in a local variable, which is not accessible.
const isReachable = readFileSync(require.resolve('fastify'), 'utf8').includes('options.frameworkErrors(')
const skip = !isReachable && `Fastify ${Fastify().version} keeps frameworkErrors to itself`

test('in frameworkErrors request.trace is an object, and the user\'s answer is sent', { skip }, async (t) => {
  const seen = []
  const { app } = await tracedApp(t, {
    listen: false,
    fastify: {
      frameworkErrors (error, request, reply) {
        seen.push([this === undefined || this === null, error.code, typeof request.trace, request.trace.traceId, request.trace.span.isRecording(), Object.keys(request).includes('trace')])
        request.trace.set('a', 1)
        request.trace.fail(error)
        request.trace.span.setAttribute('a', 1)
        reply.code(418).send(request.trace.run(() => 'mine'))
      }
    },
    routes: (app) => app.get('/:a', async () => 'ok')
  })
  const invalid = '0'.repeat(32)
  for (const url of ['/%foo', `/${'x'.repeat(200)}`]) {
    const { statusCode, payload } = await app.inject(url)
    t.same([statusCode, payload], [418, 'mine'])
  }
  t.same(seen.map((row) => row.slice(1)), [['FST_ERR_BAD_URL', 'object', invalid, false, false], ['FST_ERR_MAX_PARAM_LENGTH', 'object', invalid, false, false]])
})

test('an app without light-trace may decorate request.trace itself', { skip }, async (t) => {
  const app = Fastify({ frameworkErrors: (error, request, reply) => reply.send(`${error.code} ${typeof request.trace}`) })
  t.teardown(() => app.close())
  app.decorateRequest('trace', null)
  await tracedApp(t, { listen: false, fastify: { frameworkErrors: (error, request, reply) => reply.send(error) } })
  t.equal((await app.inject('/%foo')).payload, 'FST_ERR_BAD_URL undefined')
})

for (const trace of [{}, { spans: { hooks: ['onSend'], handler: true } }, { spans: { hooks: ['onError', 'onResponse'] } }]) {
  test(`an HTTP/2 request whose method Fastify does not know gets its 404, with ${JSON.stringify(trace)}`, async (t) => {
    const seen = []
    const { port } = await tracedApp(t, {
      fastify: { http2: true },
      trace,
      routes (app) {
        app.addHook('onSend', async (request, reply, payload) => {
          seen.push(typeof request.trace, request.trace.span.isRecording())
          return payload
        })
        app.get('/', async () => 'ok')
      }
    })
    const session = http2.connect(`http://127.0.0.1:${port}`)
    t.teardown(() => session.destroy())
    const stream = session.request({ ':path': '/', ':method': 'FOO' })
    const [headers] = await once(stream, 'response')
    let body = ''
    for await (const text of stream.setEncoding('utf8')) body += text
    t.equal(headers[':status'], 404)
    t.match(JSON.parse(body), { code: 'FST_ERR_NOT_FOUND' })
    t.same(seen, ['object', false])
  })
}
