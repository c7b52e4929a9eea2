'use strict'

// Compares our HTTP response reader with Node's client. Both get the same bytes.

const { test } = require('tap')
const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')
const { HttpResponse, BODY_BYTES_MAX, KEPT_BYTES_MAX } = require('../../../lib/export/http/response')

const HEAD = 'HTTP/1.1 200 OK\r\n'

// Responses that both must read in the same way, however they are cut into pieces. `end`: the server closes afterwards.
const wellFormed = {
  'a body of a given length': [`${HEAD}content-length: 5\r\ncontent-type: text/plain\r\n\r\nhello`],
  'no body': [`${HEAD}Content-Length: 0\r\n\r\n`],
  'names in any case, spaces around the values': [`${HEAD}CONTENT-LENGTH:  5 \r\nRetry-After:\t7 \t\r\n\r\nhello`],
  'a value of Latin-1': [`${HEAD}x: caf\u00e9\r\ncontent-length: 0\r\n\r\n`],
  'no reason': ['HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n'],
  'no reason, not even a space': ['HTTP/1.1 503\r\ncontent-length: 0\r\n\r\n'],
  chunks: [`${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;name="value"\r\nlo\r\n0\r\n\r\n`],
  'chunks, their lengths in capital letters and with zeros': [`${HEAD}transfer-encoding: chunked\r\n\r\n00A\r\n0123456789\r\n0\r\n\r\n`],
  'chunks and trailers': [`${HEAD}transfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\ncontent-type: x\r\n\r\n`],
  'no chunk': [`${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  'a body that ends with the connection': [`${HEAD}content-type: text/plain\r\n\r\nhello`, 'end'],
  'a status that has no body': ['HTTP/1.1 204 No Content\r\ncontent-type: x\r\n\r\n'],
  'the other one': ['HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n'],
  'interim responses before it': [`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nretry-after: 1\r\ncontent-length: 9\r\n\r\n${HEAD}content-length: 2\r\n\r\nok`],
  'a connection that is to be closed': [`${HEAD}Connection: Close\r\ncontent-length: 2\r\n\r\nok`],
  'empty lines before it': [`\r\n\r\n${HEAD}content-length: 2\r\n\r\nok`],
  'HTTP/1.0': ['HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
  'HTTP/1.0, kept alive': ['HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok'],
  'two fields of one name, where only one makes sense': [`${HEAD}retry-after: 7\r\nretry-after: 8\r\ncontent-length: 0\r\n\r\n`],
  'a list in two fields': [`${HEAD}connection: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`],
  'a status that nobody has heard of': ['HTTP/1.1 599 What\r\ncontent-length: 0\r\n\r\n']
}

const malformed = {
  'no HTTP': 'SSH-2.0-OpenSSH_9.9\r\n\r\n',
  'HTTP/2': '\0\0\x12\x04\0\0\0\0\0',
  'a version without minor': 'HTTP/2 200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a name with a space': `${HEAD}content length: 5\r\n\r\nhello`,
  'a field without colon': `${HEAD}content-length\r\n\r\n`,
  'a field without name': `${HEAD}: 5\r\n\r\n`,
  'a control character': `${HEAD}x: a\0b\r\n\r\n`,
  'a line that ends in LF alone': 'HTTP/1.1 200 OK\ncontent-length: 0\n\n',
  'a CR within a line': `${HEAD}x: a\rb\r\n\r\n`,
  'a length and chunks': `${HEAD}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'two lengths': `${HEAD}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`,
  'a length below zero': `${HEAD}content-length: -5\r\n\r\nhello`,
  'a length that is no number': `${HEAD}content-length: 0x5\r\n\r\nhello`,
  'more head than anybody needs': `${HEAD}x: ${'a'.repeat(20_000)}\r\n\r\n`
}

const malformedBody = {
  'a chunk without length': `${HEAD}transfer-encoding: chunked\r\n\r\n\r\nhello`,
  'a chunk of a length that is none': `${HEAD}transfer-encoding: chunked\r\n\r\n5x\r\nhello\r\n0\r\n\r\n`,
  'a chunk that is longer than it says': `${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n`
}

// Cuts into single bytes, then into pieces of 2, 3, 5, 8 … bytes, down to one piece.
function * waysToCut (bytes) {
  for (let size = 1, before = 1; before < bytes.length; [size, before] = [size + before, size]) {
    const pieces = []
    for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
    yield pieces
  }
}

function read (pieces, end) {
  const response = new HttpResponse()
  for (const piece of pieces) response.push(piece)
  if (end) response.end()
  const { status, fields, body, isComplete, isKeptAlive } = response
  return {
    status,
    body: body.toString('latin1'),
    type: fields.get('content-type'),
    retryAfter: fields.get('retry-after'),
    isComplete,
    isKeptAlive: isKeptAlive && !end
  }
}

// Returns how Node's client reads a server that writes `bytes`: the same record, or the code of the error.
async function readByNode (t, bytes, end) {
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => end ? socket.end(bytes) : socket.write(bytes))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const agent = new http.Agent({ keepAlive: true })
  t.teardown(() => {
    agent.destroy()
    server.close()
  })
  const request = http.request({ port: server.address().port, host: '127.0.0.1', agent, method: 'POST' }).end()
  let isKeptAlive = false
  agent.on('free', () => { isKeptAlive = true })
  let refused = null
  request.on('error', ({ code }) => { refused = code })
  try {
    const [response] = await once(request, 'response')
    let body = ''
    for await (const piece of response.setEncoding('latin1')) body += piece
    if (!request.destroyed) await once(request, 'close')
    return {
      status: response.statusCode,
      body,
      type: response.headers['content-type'],
      retryAfter: response.headers['retry-after'],
      isComplete: response.complete,
      isKeptAlive
    }
  } catch (error) {
    return refused ?? error.code
  }
}

for (const [what, [text, end]] of Object.entries(wellFormed)) {
  test(`${what}: read as Node reads it, in any pieces`, async (t) => {
    const bytes = Buffer.from(text, 'latin1')
    const expected = await readByNode(t, bytes, end)
    t.equal(expected.isComplete, true)
    for (const pieces of waysToCut(bytes)) t.strictSame(read(pieces, end), expected, `${pieces.length} pieces`)
  })
}

for (const [what, text] of Object.entries({ ...malformed, ...malformedBody })) {
  test(`${what}: rejected, as Node rejects it`, async (t) => {
    const bytes = Buffer.from(text, 'latin1')
    t.match(await readByNode(t, bytes), /^HPE_/)
    for (const pieces of waysToCut(bytes)) t.throws(() => read(pieces), { code: 'EBADMSG' }, `${pieces.length} pieces`)
  })
}

test('a response that is not HTTP is detected by its first byte', async (t) => {
  t.throws(() => new HttpResponse().push(Buffer.from('\0')), { code: 'EBADMSG' })
  new HttpResponse().push(Buffer.from('HTTP/1.'))
})

test('a change of protocol without a request for it is not a response', async (t) => {
  t.throws(() => read([Buffer.from('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n')]), { code: 'ECONNRESET' })
})

test('the number of interim responses is limited', async (t) => {
  const response = new HttpResponse()
  t.throws(() => {
    for (let i = 0; i < 1000; i++) response.push(Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'))
  }, { code: 'EBADMSG' })
})

test('so are chunk extensions and trailers', async (t) => {
  for (const [before, again] of [['', `1;${'x'.repeat(1000)}\r\na\r\n`], ['0\r\n', `x: ${'x'.repeat(1000)}\r\n`]]) {
    const response = new HttpResponse()
    response.push(Buffer.from(`${HEAD}transfer-encoding: chunked\r\n\r\n${before}`))
    t.throws(() => {
      for (let i = 0; i < 20; i++) response.push(Buffer.from(again))
    }, { code: 'EBADMSG' })
    t.equal(response.status, 200)
  }
})

test('unexpected data after a response ends the connection', async (t) => {
  for (const extra of ['x', HEAD]) {
    const { status, isComplete, isKeptAlive } = read([Buffer.from(`${HEAD}content-length: 2\r\n\r\nok${extra}`)])
    t.strictSame([status, isComplete, isKeptAlive], [200, true, false])
  }
})

test('a truncated body is incomplete, and its status is known', async (t) => {
  for (const text of ['content-length: 5\r\n\r\nhell', 'transfer-encoding: chunked\r\n\r\n5\r\nhell', 'transfer-encoding: chunked\r\n\r\n0\r\n']) {
    const { status, isComplete } = read([Buffer.from(HEAD + text)], 'end')
    t.strictSame([status, isComplete], [200, false])
  }
})

test('the beginning of a long body is kept, and the end is not awaited', async (t) => {
  const length = 2 * BODY_BYTES_MAX
  const bodies = [
    [`content-length: ${length}\r\n\r\n`, Buffer.alloc(length, 'a')],
    ['\r\n', Buffer.alloc(length, 'a')],
    ['transfer-encoding: chunked\r\n\r\n', Buffer.from(`8000\r\n${'a'.repeat(0x8000)}\r\n`.repeat(length / 0x8000))]
  ]
  for (const [fields, bytes] of bodies) {
    const response = new HttpResponse()
    response.push(Buffer.from(HEAD + fields))
    let pushed = 0
    while (!response.isOver) response.push(bytes.subarray(pushed, pushed += 65536))
    t.strictSame([response.isOversized, response.isComplete], [true, false])
    t.equal(response.body.length, KEPT_BYTES_MAX)
    t.match(response.body.toString(), /^a+$/)
    t.ok(pushed < bytes.length)
  }
  const exact = new HttpResponse()
  exact.push(Buffer.from(`${HEAD}content-length: ${BODY_BYTES_MAX}\r\n\r\n`))
  exact.push(Buffer.alloc(BODY_BYTES_MAX))
  t.strictSame([exact.isOversized, exact.isComplete, exact.isCut], [false, true, true])
})
