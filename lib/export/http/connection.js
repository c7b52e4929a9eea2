'use strict'

// One connection to the collector. It serves one request at a time.
//
// It does not use node:http. Using its client makes every request to a server in the same process more expensive (bench/RESULTS.md).

const net = require('node:net')
const tls = require('node:tls')
const { quoted } = require('./secrets.js')

const KEEP_ALIVE_DELAY_MS = 1000
const HEAD_LENGTH_MAX = 16_384 // the longest head of a proxy's response to CONNECT
const HEAD_END = '\r\n\r\n'
const STATUS_LINE = /^HTTP\/1\.\d (\d{3})[^\r\n]*/

class Connection {
  #onSession
  #onGone
  #socket = null
  #exchange = null // the Attempt of the current request
  #error = null
  #isReady = false
  #isHeld = false
  #isOpen = true
  wasUsed = false // it has delivered a complete response before

  // onSession(session) receives the TLS session that shortens the next handshake, or null after an error. onGone() is called when the
  // socket is closed, never synchronously.
  constructor (address, session, onSession, onGone) {
    this.#onSession = onSession
    this.#onGone = onGone
    const { proxy, secureContext } = address
    try {
      if (proxy === null) this.#listen(address, connect(address, session))
      // A proxy can forward plain HTTP. TLS to the collector needs a tunnel.
      else if (secureContext === undefined) this.#listen(proxy, connect(proxy, session))
      else this.#openTunnel(address, session)
    } catch (error) { // denied by Node's permission model
      this.#error = error
      process.nextTick(() => this.#onClose())
    }
  }

  #openTunnel (address, session) {
    const outer = connect(address.proxy)
    this.#prepare(outer)
    outer.once(readyEventOf(address.proxy), () => openTunnel(outer, address, (error) => {
      if (error !== null) return outer.destroy(error)
      this.#listen(address, connect(address, session, outer))
      outer.on('close', () => this.#socket.destroy())
      this.#applyHold()
    }))
  }

  // Nothing is sent before the ready event: the server is not verified until `secureConnect`.
  #listen (address, socket) {
    this.#prepare(socket)
    socket.once(readyEventOf(address), () => {
      this.#isReady = true
      this.#exchange?.onReady()
    })
    socket.on('session', this.#onSession)
    socket.on('data', (bytes) => {
      if (this.#exchange === null) this.destroy() // a response without a request
      else this.#exchange.onData(bytes)
    })
    socket.on('end', () => {
      this.#isOpen = false // before `onEnd`, which may ask for a new connection
      this.#exchange?.onEnd()
      socket.destroy()
    })
  }

  #prepare (socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
    socket.unref()
    // Happy Eyeballs creates a new handle for each address that it tries, and each handle starts out referenced.
    socket.on('connectionAttempt', () => this.#applyHold())
    socket.on('error', (error) => {
      this.#error = error
      this.#onSession(null)
    })
    socket.on('close', () => {
      if (socket === this.#socket) this.#onClose() // not the outer socket of a tunnel
    })
  }

  get isFree () { return this.#isOpen && this.#exchange === null }

  // Serves one Attempt: calls its methods until `release` or `destroy`. May call onReady synchronously.
  serve (exchange) {
    this.#exchange = exchange
    if (this.#isReady) exchange.onReady()
  }

  // Writes Buffers. They must not change before onWritten() is called.
  write (parts, onWritten) {
    const socket = this.#socket
    const last = parts.length - 1
    if (last > 0) socket.cork()
    for (let i = 0; i < last; i++) socket.write(parts[i])
    socket.write(parts[last], (error) => {
      // On Node 20 a write that `destroy` interrupts reports no error.
      if (!error && !socket.destroyed) onWritten()
    })
    if (last > 0) socket.uncork()
  }

  // A held connection keeps the process alive.
  hold (isHeld) {
    if (isHeld === this.#isHeld) return
    this.#isHeld = isHeld
    this.#applyHold()
  }

  #applyHold () {
    if (this.#socket === null || this.#socket.destroyed) return
    if (this.#isHeld) this.#socket.ref()
    else this.#socket.unref()
  }

  // Keeps the connection for the next request, after the response was read to its end.
  release () {
    this.#exchange = null
    this.wasUsed = true
    this.hold(false)
  }

  destroy () {
    this.#exchange = null
    this.#isOpen = false
    this.#socket?.destroy()
  }

  #onClose () {
    const exchange = this.#exchange
    this.#exchange = null
    this.#isOpen = false
    this.#onGone()
    exchange?.onClosed(this.#error ?? Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' }))
  }
}

function readyEventOf ({ secureContext }) {
  return secureContext === undefined ? 'connect' : 'secureConnect'
}

// The options have no prototype, so that they inherit nothing that an app added to Object.prototype.
function connect ({ host, port, secureContext }, session = undefined, socket = undefined) {
  const options = { __proto__: null, host, port }
  if (secureContext === undefined) return net.connect(options)
  // SNI does not allow IP addresses. The certificate is checked against the address anyway.
  const servername = net.isIP(host) === 0 ? host : ''
  return tls.connect(Object.assign(options, { socket, secureContext, servername, session, ALPNProtocols: ['http/1.1'] }))
}

// Opens a tunnel through an HTTP proxy with CONNECT (RFC 9110, 9.3.6). After a 2xx response, all further bytes are the collector's.
// Calls done(error) at most once, and not at all if the socket closes first.
function openTunnel (socket, { host, port, proxy: { authorization, secrets } }, done) {
  const target = `${net.isIPv6(host) ? `[${host}]` : host}:${port}`
  const credentials = authorization === '' ? '' : `proxy-authorization: ${authorization}\r\n`
  let head = ''
  function onData (bytes) {
    head += bytes.toString('latin1')
    const end = head.indexOf(HEAD_END)
    if (end === -1 && head.length <= HEAD_LENGTH_MAX) return
    socket.off('data', onData)
    const why = refusal(head, end, target, secrets)
    done(why === '' ? null : Object.assign(new Error(`the proxy ${why}`), { code: 'ERR_PROXY_TUNNEL' }))
  }
  socket.on('data', onData)
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\nproxy-connection: keep-alive\r\n${credentials}\r\n`, 'latin1')
}

// Returns why the tunnel failed, or ''. In TLS the client sends first, so bytes after the head cannot come from the collector.
function refusal (head, end, target, secrets) {
  const [line, status] = STATUS_LINE.exec(head) ?? []
  if (line === undefined || end === -1) return 'does not answer CONNECT with HTTP/1.1'
  const hint = status === '407' ? "; put the user and password in the proxy's URL" : ''
  if (status.startsWith('2')) return head.length > end + HEAD_END.length ? 'sends more than an answer to CONNECT' : ''
  return `answers '${quoted(line, secrets, 64)}' to CONNECT ${target}${hint}`
}

module.exports = { Connection }
