'use strict'

// Which clients may read, and which may send.

const http = require('node:http')
const net = require('node:net')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { test } = require('tap')
const { startViewer, traceId } = require('./support')

const TOKEN = 'a-token-of-enough-length'
const READING = ['/api/traces', '/api/traces/last', '/api/routes', '/api/exceptions', '/api/stats', '/api/events', '/api/export']

// fetch does not let its caller set these headers.
function ask (port, path, headers, method = 'GET', body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ port, host: '127.0.0.1', path, method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece) => {
        text += piece
        if (response.headers['content-type'] === 'text/event-stream') response.destroy()
      })
      response.on('close', () => resolve({ status: response.statusCode, headers: response.headers, text }))
    })
    request.on('error', reject).end(body)
  })
}

function raw (port, text) {
  return new Promise((resolve) => {
    let answer = ''
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text))
    socket.setEncoding('utf8').on('data', (piece) => { answer += piece }).on('close', () => resolve(answer))
  })
}

test('only this machine\'s own names are answered', async (t) => {
  const { port, send } = await startViewer(t)
  await send([{}])
  for (const host of ['evil.example', 'evil.example:4318', `localhost.evil.example:${port}`, '127.0.0.1.evil.example', '10.0.0.1', 'localhost@evil.example']) {
    for (const path of [...READING, '/', '/api/whoami']) t.equal((await ask(port, path, { host })).status, 403, `${host} ${path}`)
  }
  t.match(await raw(port, 'GET /api/traces HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 403 /, 'nor is who names none')
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'localhost', `LocalHost:${port}`, `shop.localhost:${port}`]) {
    t.equal((await ask(port, '/api/traces', { host })).status, 200, host)
  }
})

test('pages of other origins may not read', async (t) => {
  const { port, send } = await startViewer(t)
  await send([{}])
  const host = `localhost:${port}`
  const foreign = [
    { origin: 'https://evil.example' }, { origin: 'null' }, { origin: 'http://localhost:3000' }, { origin: `https://${host}` },
    { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }
  ]
  for (const headers of foreign) {
    for (const path of READING) {
      const answer = await ask(port, path, { host, ...headers })
      t.equal(answer.status, 403, `${JSON.stringify(headers)} ${path}`)
      t.notOk(answer.headers['access-control-allow-origin'])
    }
    t.equal((await ask(port, '/api/import', { host, ...headers, 'content-type': 'application/json' }, 'POST', '{}')).status, 403)
  }
  t.equal((await ask(port, '/api/traces', { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })).status, 200, 'its own may')
  t.equal((await ask(port, '/', { host, 'sec-fetch-site': 'cross-site' })).status, 200, 'and a link may lead to the page')
})

test('a link on a page of another origin opens the page without data', async (t) => {
  const { port, send } = await startViewer(t)
  await send([{ name: 'secret' }])
  const page = async (headers, method) => (await ask(port, `/traces/${traceId(1)}`, { host: `localhost:${port}`, ...headers }, method)).text
  t.match(await page({ 'sec-fetch-site': 'none' }), /secret/, 'its address was typed')
  t.match(await page({ 'sec-fetch-site': 'same-origin' }), /secret/)
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }, { origin: 'null' }]) {
    const text = await page(headers)
    t.match(text, /<\/html>/, JSON.stringify(headers))
    t.notMatch(text, /secret/, JSON.stringify(headers))
  }
  t.equal(await page({}, 'HEAD'), '')
})

test('the page may run nothing but its own scripts', async (t) => {
  const { get } = await startViewer(t)
  for (const path of ['/', `/traces/${traceId(1)}`, '/routes', '/exceptions']) {
    const response = await get(path)
    t.equal(response.status, 200, path)
    const policy = response.headers.get('content-security-policy')
    t.match(policy, /^default-src 'none'; script-src 'sha256-[\w+/=]+'/)
    t.notMatch(policy, /unsafe|\*/)
    t.match(policy, /frame-ancestors 'none'/)
    t.equal(response.headers.get('x-content-type-options'), 'nosniff')
  }
  t.equal((await get('/elsewhere')).status, 404)
  t.equal((await get('/api/traces')).headers.get('x-content-type-options'), 'nosniff')
})

test('pages on localhost may send, and other pages may not', async (t) => {
  const { port, viewer } = await startViewer(t)
  const post = (origin) => ask(port, '/v1/traces', { origin, 'content-type': 'application/json' }, 'POST', '{}')
  for (const origin of ['http://localhost:5173', 'http://127.0.0.1:8080', 'https://shop.localhost']) {
    const answer = await post(origin)
    t.match([answer.status, answer.headers['access-control-allow-origin']], [200, origin])
    t.match(await ask(port, '/v1/traces', { origin, 'access-control-request-method': 'POST' }, 'OPTIONS'), { status: 204, headers: { 'access-control-allow-headers': /content-type/ } })
  }
  for (const origin of ['https://evil.example', 'http://localhost.evil.example', 'null']) {
    const answer = await post(origin)
    t.equal(answer.status, 403, origin)
    t.notOk(answer.headers['access-control-allow-origin'])
  }
  t.equal(viewer.stats().refused.reasons.origin, 3, 'and that is counted')
  t.equal((await ask(port, '/v1/traces', { host: 'host.docker.internal', 'content-type': 'application/json' }, 'POST', '{}')).status, 200, 'a container names this machine as it likes')
})

test('with --host, every address that returns data requires the token', async (t) => {
  const { port, get } = await startViewer(t, { token: TOKEN })
  for (const path of [...READING, '/']) {
    t.equal((await ask(port, path, { host: 'shop.lan:4318' })).status, 401, path)
    t.equal((await ask(port, path, { cookie: 'light_trace_token=a-token-of-enough-lengt' })).status, 401, path)
  }
  t.match((await ask(port, '/', {})).text, /requires a token/)
  t.equal((await ask(port, '/api/stats', { host: 'shop.lan:4318', authorization: `Bearer ${TOKEN}` })).status, 200)
  t.equal((await ask(port, `/api/stats?token=${TOKEN}`, { host: 'shop.lan:4318' })).status, 200)
  t.equal((await ask(port, '/api/stats', { cookie: `other=1; light_trace_token=${TOKEN}` })).status, 200)
  const page = await get(`/traces/last?a=b&token=${TOKEN}`, { redirect: 'manual' })
  t.match([page.status, page.headers.get('location')], [303, '/traces/last?a=b'], 'the token leaves the address')
  t.match(page.headers.get('set-cookie'), new RegExp(`^light_trace_token=${TOKEN}; Path=/; HttpOnly; SameSite=Strict$`))
  t.equal((await get(`/?token=${TOKEN.toUpperCase()}`, { redirect: 'manual' })).status, 401)
  t.equal((await ask(port, `//evil.example/?token=${TOKEN}`, {})).headers.location?.startsWith('//'), undefined, 'and leads to no other host')
  t.equal((await ask(port, '/v1/traces', { host: 'shop.lan:4318', 'content-type': 'application/json' }, 'POST', '{}')).status, 200, 'sending needs none')
  t.equal((await ask(port, '/api/stats', { authorization: `Bearer ${TOKEN}`, origin: 'https://evil.example' })).status, 403, 'nor does it open it to other origins')
})

test('the viewer listens on loopback only', async (t) => {
  const { port } = await startViewer(t)
  const addresses = Object.values(require('node:os').networkInterfaces()).flat().filter(({ internal, family }) => !internal && family === 'IPv4')
  for (const { address } of addresses) {
    await t.rejects(new Promise((resolve, reject) => { net.connect({ port, host: address }).on('connect', resolve).on('error', reject) }), { code: 'ECONNREFUSED' }, address)
  }
})

test('a read with a method other than GET is refused', async (t) => {
  const { get, post } = await startViewer(t)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) t.equal((await get('/api/traces', { method })).status, 405, method)
  t.equal((await get('/api/import')).status, 405)
  t.equal((await post('/api/import', '{}', { 'content-type': 'text/plain' })).status, 415, 'as a form could send it')
  t.equal((await get('/v1/traces')).status, 405)
  t.equal((await get('/api/events', { method: 'HEAD' })).status, 405, 'a stream has no head')
  t.equal((await post('/api/app', '{}')).status, 404, 'where no app was started nobody reports')
})

test('an editor is only asked for a file that is on this machine, and never where others read', async (t) => {
  const name = process.platform === 'win32' ? 'a #%.js' : 'a #?%.js' // Windows does not allow ? in names
  const folder = t.testdir({ [name]: '' })
  const opened = async (options, attributes) => {
    const { send, json } = await startViewer(t, options)
    await send([{ attributes }])
    const path = `/api/traces/${traceId(1)}/spans/0000000000000001`
    return (await json(path, { headers: { authorization: `Bearer ${TOKEN}` } })).attributes.map(({ open }) => open).filter((open) => open !== undefined)
  }
  const here = { 'code.file.path': join(folder, name), 'code.line.number': 7 }
  const address = pathToFileURL(here['code.file.path']).href.replace('file://', 'vscode://file')
  t.same(await opened({}, here), [`${address}:7`])
  t.same(await opened({}, { ...here, 'code.line.number': '7&x' }), [address])
  t.same(await opened({ editor: 'none' }, here), [])
  t.same(await opened({ token: TOKEN }, here), [])
  for (const file of ['routes.js', folder, join(folder, 'missing.js'), `/${here['code.file.path']}`, '\\\\host\\share', 'javascript:alert(1)', 'file:///etc/passwd', '', 7, '/\0']) {
    t.same(await opened({}, { 'code.file.path': file }), [], String(file))
  }
})
