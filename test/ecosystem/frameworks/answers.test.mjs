// The plugins that most apps use, in one app after light-trace. Each kind of answer has one SERVER span that matches what the client saw,
// and the request's context is in each handler and hook.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import compress from '@fastify/compress'
import cors from '@fastify/cors'
import helmet from '@fastify/helmet'
import httpProxy from '@fastify/http-proxy'
import multipart from '@fastify/multipart'
import rateLimit from '@fastify/rate-limit'
import fastifyStatic from '@fastify/static'
import underPressure from '@fastify/under-pressure'
import fastify from 'fastify'
import lightTrace from 'light-trace'
import { createCollector } from 'light-trace/testing'

const TEXT = 'The quick brown fox. '.repeat(500)
const ORIGIN = 'https://shop.example'

const ANSWERS = [
  { what: 'an answer that is compressed', path: '/json', headers: { 'accept-encoding': 'gzip' }, status: 200, span: 'GET /json', check: (body) => assert.equal(JSON.parse(gunzipSync(body)).text, TEXT) },
  { what: 'a stream that is compressed', path: '/stream', headers: { 'accept-encoding': 'gzip' }, status: 200, span: 'GET /stream', check: (body) => assert.equal(String(gunzipSync(body)), TEXT) },
  { what: 'a preflight of CORS', path: '/json', method: 'OPTIONS', headers: { origin: ORIGIN, 'access-control-request-method': 'GET' }, status: 204, span: 'OPTIONS *' },
  { what: 'a file', path: '/assets/page.txt', status: 200, span: 'GET /assets/*', check: (body) => assert.equal(String(body), TEXT) },
  { what: 'a part of a file', path: '/assets/page.txt', headers: { range: 'bytes=4-8' }, status: 206, span: 'GET /assets/*', check: (body) => assert.equal(String(body), 'quick') },
  { what: 'a missing part of a file', path: '/assets/page.txt', headers: { range: 'bytes=999999-' }, status: 416, span: 'GET /assets/*', thrown: true },
  { what: 'an unchanged file', path: '/assets/page.txt', headers: (answers) => ({ 'if-none-match': answers['a file'].headers.etag }), status: 304, span: 'GET /assets/*' },
  { what: 'the headers of a file', path: '/assets/page.txt', method: 'HEAD', status: 200, span: 'HEAD /assets/*' },
  { what: 'a missing file', path: '/assets/none.txt', status: 404, span: 'GET /assets/*' },
  { what: 'a path without a route', path: '/none', status: 404, span: 'GET' },
  { what: 'an upload', path: '/upload', form: TEXT, status: 200, span: 'POST /upload', check: (body) => assert.equal(String(body), String(TEXT.length)) },
  { what: 'an upload that is too large', path: '/upload', form: TEXT.repeat(2), status: 413, span: 'POST /upload', thrown: true },
  { what: 'an upload without a form', path: '/upload', method: 'POST', status: 406, span: 'POST /upload', thrown: true },
  { what: 'an answer of the upstream', path: '/api/stock/7', status: 200, span: 'GET /api/*', calls: 1, check: (body) => assert.equal(String(body), 'many') },
  { what: 'an error of the upstream', path: '/api/broken', status: 502, span: 'GET /api/*', calls: 1 },
  { what: 'an upstream that hangs up', path: '/api/hang-up', status: 500, span: 'GET /api/*', calls: 1 },
  { what: 'the last of a rate limit', path: '/few', status: 200, span: 'GET /few' },
  { what: 'the last request within a rate limit', path: '/few', status: 429, span: 'GET /few', thrown: true },
  { what: 'the first request above a rate limit', path: '/json', pressed: true, status: 503, span: 'GET /json' }
]

test('each kind of answer has one span', async (t) => {
  const { collector, url, press } = await start(t)
  const answers = {}
  for (const answer of ANSWERS) {
    const { what, path, method = 'GET', headers, form, status, span: name, calls = 0, check = () => {}, pressed = false, thrown = false } = answer
    await t.test(what, async () => {
      await press(pressed)
      collector.reset()
      const got = await ask(url + path, { method, headers: typeof headers === 'function' ? headers(answers) : headers, form })
      answers[what] = got
      assert.equal(got.status, status, String(got.body))
      check(got.body)
      assert.equal(got.headers['x-frame-options'], 'SAMEORIGIN') // helmet sets it on all answers
      const [server, ...others] = await collector.spans()
      assert.equal(`${server.kind} ${server.name}`, `SERVER ${name}`)
      assert.equal(server.attributes['http.response.status_code'], status)
      assert.equal(server.status.code, status >= 500 ? 'ERROR' : 'UNSET')
      assert.equal(server.attributes['error.type'] !== undefined, thrown || status >= 500)
      assert.deepEqual(others.map(({ kind, parentSpanId }) => kind + parentSpanId), Array(calls).fill(`CLIENT${server.spanId}`))
      assert.equal(got.headers['x-in-context'], 'true') // in onSend, the last of the hooks
    })
  }
})

async function start (t) {
  const root = mkdtempSync(join(tmpdir(), 'light-trace-answers-'))
  t.after(() => rmSync(root, { recursive: true }))
  writeFileSync(join(root, 'page.txt'), TEXT)
  const behind = http.createServer((request, response) => {
    if (request.url === '/hang-up') return request.socket.destroy()
    response.writeHead(request.url === '/broken' ? 502 : 200).end('many')
  })
  await new Promise((resolve) => behind.listen(0, '127.0.0.1', resolve))
  t.after(() => behind.close())

  const collector = createCollector()
  const app = fastify()
  t.after(() => app.close())
  let isPressed = false
  await app.register(lightTrace, { spanProcessors: [collector] })
  await app.register(helmet)
  await app.register(underPressure, { healthCheck: async () => !isPressed, healthCheckInterval: 5 })
  await app.register(cors, { origin: ORIGIN })
  await app.register(compress, { threshold: 0 })
  await app.register(rateLimit, { global: false })
  await app.register(multipart, { limits: { fileSize: TEXT.length } })
  await app.register(fastifyStatic, { root, prefix: '/assets/' })
  await app.register(httpProxy, { upstream: `http://127.0.0.1:${behind.address().port}`, prefix: '/api', replyOptions: { retryMethods: [] } })
  app.addHook('onSend', async (request, reply) => { reply.header('x-in-context', String(lightTrace.current() === request.trace)) })
  app.get('/json', async () => ({ text: TEXT }))
  app.get('/stream', (request, reply) => reply.type('text/plain').send(Readable.from([TEXT])))
  app.get('/few', { config: { rateLimit: { max: 1 } } }, async () => 'one')
  app.post('/upload', async (request) => {
    const { length } = await (await request.file()).toBuffer()
    assert.equal(lightTrace.current(), request.trace)
    return String(length)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const press = async (is) => {
    isPressed = is
    while (app.isUnderPressure() !== is) await new Promise((resolve) => setImmediate(resolve))
  }
  return { collector, press, url: `http://127.0.0.1:${app.server.address().port}` }
}

// Not with fetch, which requests compressed answers and decompresses them.
async function ask (url, { method, headers, form }) {
  const request = http.request(url, { method: form === undefined ? method : 'POST', headers: { ...headers, ...(form !== undefined && { 'content-type': 'multipart/form-data; boundary=part' }) } })
  request.end(form && `--part\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\n${form}\r\n--part--\r\n`)
  const [response] = await once(request, 'response')
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(await response.toArray()) }
}
