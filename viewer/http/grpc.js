'use strict'

// OTLP over gRPC: one call per message, over HTTP/2 without TLS.
// https://opentelemetry.io/docs/specs/otlp/#otlpgrpc, https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

const net = require('node:net')
const { Message } = require('../otlp/proto-writer')
const { Refused, ENCODINGS, BODY_BYTES_MAX, tooLarge } = require('./body')
const { responseOf } = require('./receive')
const { listen } = require('./listen')
const { sendingOrigin } = require('./security')

const CALLS = {
  '/opentelemetry.proto.collector.trace.v1.TraceService/Export': 'traces',
  '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export': 'metrics',
  '/opentelemetry.proto.collector.logs.v1.LogsService/Export': 'logs'
}
const TYPE = /^application\/grpc(?:\+proto)?\s*(?:;|$)/i
const ANSWER_HEADERS = { ':status': 200, 'content-type': 'application/grpc', 'grpc-accept-encoding': ENCODINGS.filter((name) => name !== '').join() }

// The status of gRPC for a status of HTTP. OTLP lets senders retry UNAVAILABLE, and RESOURCE_EXHAUSTED only with a RetryInfo.
const UNAVAILABLE = 14
const STATUSES = { 400: 3 /* INVALID_ARGUMENT */, 403: 7 /* PERMISSION_DENIED */, 413: 8 /* RESOURCE_EXHAUSTED */, 415: 12, 500: 13 /* INTERNAL */, 501: 12 /* UNIMPLEMENTED */, 503: UNAVAILABLE }
const RETRY_AFTER_SECONDS = 1
const TEXT_MAX = 500

// A message: | compressed (1 byte) | length (4) | bytes … |
const PREFIX_BYTES = 5

const CONNECTIONS_MAX = 256
const CALLS_MAX = 1000 // of all connections
const ABORTED_MAX = 500 // of one connection, which is then closed: a sender that resets its calls makes work for nothing
const HTTP2 = {
  maxHeaderListPairs: 64,
  settings: { maxConcurrentStreams: 100, maxHeaderListSize: 8192, enablePush: false }
}
const NO_ERROR = 0
const CANCEL = 8
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const NOTHING = Buffer.alloc(0)

const LIMITS = {
  prefaceMs: 10_000,
  callMs: 60_000, // until the answer has been read
  idleMs: 300_000, // a sender opens a new connection when it has something to send
  closingMs: 500
}

class Grpc {
  #receiver
  #bodies
  #httpPort
  #limits
  #servers = []
  #http2 = null
  #connections = new Map() // net.Socket → its Http2Session, or null until HTTP/2 is spoken
  #open = 0
  #messages = 0

  /**
   * @param {import('./receive').Receiver} receiver
   * @param {import('./body').Bodies} bodies shared with HTTP, as are its limits
   * @param {() => number | null} httpPort
   */
  constructor (receiver, bodies, httpPort, limits = {}) {
    this.#receiver = receiver
    this.#bodies = bodies
    this.#httpPort = httpPort
    this.#limits = { ...LIMITS, ...limits }
    this.port = null
  }

  /** @returns {Promise<number>} the port. @throws the errors of listen */
  async listen (port, host) {
    this.#servers = await listen(() => net.createServer({ noDelay: true }, (socket) => this.#connected(socket)), port, host)
    this.port = this.#servers[0].address().port
    return this.port
  }

  stats () {
    return { port: this.port, connections: this.#connections.size, messages: this.#messages }
  }

  async close () {
    const closed = this.#servers.map((server) => new Promise((resolve) => server.close(resolve)))
    for (const socket of this.#connections.keys()) this.#leave(socket)
    await Promise.all(closed)
  }

  // Senders of OTLP over HTTP get an answer that they can show.
  #connected (socket) {
    socket.on('error', () => {})
    if (this.#connections.size >= CONNECTIONS_MAX) {
      this.#refused(new Refused(503, 'connections', 'too many connections'))
      return socket.destroy()
    }
    this.#connections.set(socket, null)
    socket.on('close', () => this.#connections.delete(socket))
    const timer = setTimeout(() => socket.destroy(), this.#limits.prefaceMs)
    socket.on('close', () => clearTimeout(timer))
    let first = NOTHING
    socket.on('readable', () => {
      const piece = socket.read()
      if (piece === null) return
      first = Buffer.concat([first, piece])
      const isHttp2 = first.subarray(0, PREFACE.length).equals(PREFACE.subarray(0, first.length))
      if (isHttp2 && first.length < PREFACE.length) return
      socket.removeAllListeners('readable')
      if (!isHttp2) return this.#explain(socket)
      clearTimeout(timer)
      socket.unshift(first)
      this.#speak(socket)
    })
  }

  #explain (socket) {
    this.#refused(new Refused(400, 'protocol', 'HTTP/2 is needed'))
    const text = `This port is for OTLP over gRPC. Send OTLP over HTTP to port ${this.#httpPort() ?? 4318}.\n`
    socket.end(`HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`)
    socket.resume() // a reset would reach the sender before the answer; prefaceMs ends it
  }

  #speak (socket) {
    if (this.#http2 === null) {
      this.#http2 = require('node:http2').createServer(HTTP2)
      this.#http2.on('stream', (stream, headers) => { this.#call(stream, headers) })
    }
    this.#http2.once('session', (session) => this.#opened(session, socket))
    this.#http2.emit('connection', socket)
  }

  #opened (session, socket) {
    let isUsed = false
    let aborted = 0
    this.#connections.set(socket, session)
    session.on('stream', (stream) => {
      isUsed = true
      stream.on('aborted', () => { if (++aborted > ABORTED_MAX) socket.destroy() })
    })
    session.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      // The GOAWAY of grpc-go is an error to Node. It comes after the calls, and nothing is lost.
      if (error.code === 'ERR_HTTP2_ERROR' && !isUsed) this.#refused(new Refused(400, 'protocol', error.message))
    })
    session.setTimeout(this.#limits.idleMs, () => this.#leave(socket))
  }

  // Says goodbye, so that senders know which calls to repeat. A sender that does not read is not waited for.
  #leave (socket) {
    const session = this.#connections.get(socket)
    if (session === null) return socket.destroy()
    session.close()
    const timer = setTimeout(() => socket.destroy(), this.#limits.closingMs)
    socket.on('close', () => clearTimeout(timer))
  }

  async #call (stream, headers) {
    const timer = setTimeout(() => stream.close(CANCEL), this.#limits.callMs)
    this.#open++
    stream.on('close', () => {
      clearTimeout(timer)
      this.#open--
    })
    stream.on('error', () => {})
    try {
      const signal = signalOf(headers)
      if (this.#open > CALLS_MAX) throw new Refused(503, 'busy', 'too many calls')
      const dropped = this.#receiver.take(signal, await this.#read(stream, headers), false)
      this.#messages++
      answer(stream, responseOf(dropped, signal))
    } catch (error) {
      this.#refuse(stream, headers, error)
    }
  }

  #read (stream, headers) {
    const encoding = (headers['grpc-encoding'] ?? 'identity').trim().toLowerCase()
    return this.#bodies.receive(stream, (body) => unpack(body, encoding), checkLength)
  }

  #refuse (stream, headers, error) {
    const status = this.#refused(error)
    if (stream.destroyed || stream.closed || stream.headersSent) return
    const text = status === 500 && !(error instanceof Refused) ? 'the viewer failed: its terminal shows why' : error.message.slice(0, TEXT_MAX)
    // The rest of the message would be read for nothing. Closed at once, the stream would be reset before it has answered.
    stream.on('finish', () => setImmediate(() => stream.close(NO_ERROR)))
    if (!TYPE.test(headers['content-type'])) {
      stream.respond({ ':status': status, 'content-type': 'text/plain; charset=utf-8' })
      return stream.end(`${text}\n`)
    }
    const code = STATUSES[status]
    const retry = code === UNAVAILABLE ? { 'grpc-status-details-bin': retryInfo(code, text) } : {}
    stream.respond({ ...ANSWER_HEADERS, 'grpc-status': String(code), 'grpc-message': percentEncoded(text), ...retry }, { endStream: true })
  }

  /** @returns {number} the status of HTTP */
  #refused (error) {
    try {
      return this.#receiver.refusal(error)
    } catch {
      process.stderr.write(`light-trace: the viewer could not answer: ${error.stack}\n`)
      return 500
    }
  }
}

/** @throws Refused */
function signalOf (headers) {
  if (!TYPE.test(headers['content-type'])) throw new Refused(415, 'media_type', 'this port is for OTLP over gRPC: content-type must be application/grpc')
  if (sendingOrigin({ headers }) === null) throw new Refused(403, 'origin', 'only pages of localhost may send')
  const signal = headers[':method'] === 'POST' && Object.hasOwn(CALLS, headers[':path']) ? CALLS[headers[':path']] : undefined
  if (signal === undefined) throw new Refused(501, 'method', 'only Export of OTLP\'s TraceService, MetricsService and LogsService can be called')
  return signal
}

/** Refuses a message that is too large, or a second one, before it has been read. */
function checkLength (pieces, length) {
  if (length < PREFIX_BYTES) return
  while (pieces[0].length < PREFIX_BYTES) pieces.splice(0, 2, Buffer.concat([pieces[0], pieces[1]]))
  const bytes = pieces[0].readUInt32BE(1)
  if (bytes > BODY_BYTES_MAX - PREFIX_BYTES) throw tooLarge()
  if (length > PREFIX_BYTES + bytes) throw oneMessage()
}

function unpack (body, encoding) {
  if (body.length === 0) throw oneMessage()
  if (body.length < PREFIX_BYTES || body.length !== PREFIX_BYTES + body.readUInt32BE(1)) throw new Refused(400, 'malformed', 'the message is incomplete')
  const bytes = body.subarray(PREFIX_BYTES)
  if (body[0] === 0) return { bytes, encoding: 'identity' }
  if (body[0] !== 1) throw new Refused(400, 'malformed', `the message has the flag ${body[0]}`)
  if (!ENCODINGS.includes(encoding)) throw new Refused(501, 'encoding', `grpc-encoding ${encoding} is not understood: gzip, deflate or none`)
  if (encoding === 'identity' || encoding === '') throw new Refused(500, 'encoding', 'the message is compressed, and grpc-encoding does not say how')
  return { bytes, encoding }
}

function oneMessage () {
  return new Refused(501, 'malformed', 'a call has exactly one message')
}

function answer (stream, message) {
  if (stream.destroyed || stream.closed) return
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(message.length, 1)
  stream.respond(ANSWER_HEADERS, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(Buffer.concat([prefix, message]))
}

/** A google.rpc.Status { code = 1; message = 2; Any details = 3 } with a RetryInfo { Duration retry_delay = 1 }, in base64. */
function retryInfo (code, text) {
  const delay = new Message()
  delay.varint(1, RETRY_AFTER_SECONDS)
  const info = new Message()
  info.message(1, delay)
  const any = new Message()
  any.text(1, 'type.googleapis.com/google.rpc.RetryInfo')
  any.message(2, info)
  const status = new Message()
  status.varint(1, code)
  status.text(2, text)
  status.message(3, any)
  return status.finish().toString('base64').replaceAll('=', '')
}

/** Everything but the visible characters of ASCII and spaces is encoded. */
function percentEncoded (text) {
  return [...Buffer.from(text)].map((byte) => byte < 0x20 || byte > 0x7e || byte === 0x25 ? `%${byte.toString(16).toUpperCase().padStart(2, '0')}` : String.fromCharCode(byte)).join('')
}

module.exports = { Grpc }
