'use strict'

// One connection to the collector, for one request after the other.
//
// Not node:http: its client makes each request that a server in the process answers dearer (bench/RESULTS.md).

const net = require('node:net')
const tls = require('node:tls')
const { quoted } = require('./secrets.js')

const KEEP_ALIVE_DELAY_MS = 1000
const HEAD_LENGTH_MAX = 16_384 // of a proxy's answer to CONNECT
const HEAD_END = '\r\n\r\n'
const STATUS_LINE = /^HTTP\/1\.\d (\d{3})[^\r\n]*/

class Connection {
  #onSession
  #onGone
  #socket = null
  #exchange = null // the Attempt of the request that is under way
  #error = null
  #isReady = false
  #isHeld = false
  #isOpen = true
  wasUsed = false // it has brought a whole response before

  // onSession(session) gets what makes the next handshake shorter, null if one failed. onGone(): the socket is closed, in a later turn.
  constructor (address, session, onSession, onGone) {
    this.#onSession = onSession
    this.#onGone = onGone
    const { proxy, secureContext } = address
    try {
      if (proxy === null) this.#listen(address, connect(address, session))
      // A proxy forwards what it can read; TLS with the collector goes through a tunnel.
      else if (secureContext === undefined) this.#listen(proxy, connect(proxy, session))
      else this.#openTunnel(address, session)
    } catch (error) { // Node's permission model
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

  // Nothing is sent before the ready event: until `secureConnect` the other end is not verified.
  #listen (address, socket) {
    this.#prepare(socket)
    socket.once(readyEventOf(address), () => {
      this.#isReady = true
      this.#exchange?.onReady()
    })
    socket.on('session', this.#onSession)
    socket.on('data', (bytes) => {
      if (this.#exchange === null) this.destroy() // an answer without a request
      else this.#exchange.onData(bytes)
    })
    socket.on('end', () => {
      this.#isOpen = false // before the end of the exchange asks for a connection
      this.#exchange?.onEnd()
      socket.destroy()
    })
  }

  #prepare (socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
    socket.unref()
    // Each address that happy eyeballs tries gets a handle of its own, which starts out referenced.
    socket.on('connectionAttempt', () => this.#applyHold())
    socket.on('error', (error) => {
      this.#error = error
      this.#onSession(null)
    })
    socket.on('close', () => {
      if (socket === this.#socket) this.#onClose() // not the outer one of a tunnel
    })
  }

  get isFree () { return this.#isOpen && this.#exchange === null }

  // Serves one Attempt, whose methods are called until `release` or `destroy`; onReady may be called in this turn.
  serve (exchange) {
    this.#exchange = exchange
    if (this.#isReady) exchange.onReady()
  }

  // Writes Buffers, which must not change before onWritten() is called.
  write (parts, onWritten) {
    const socket = this.#socket
    const last = parts.length - 1
    if (last > 0) socket.cork()
    for (let i = 0; i < last; i++) socket.write(parts[i])
    socket.write(parts[last], (error) => {
      // On Node 20 a write that `destroy` has cut off is no error.
      if (!error && !socket.destroyed) onWritten()
    })
    if (last > 0) socket.uncork()
  }

  // While held it keeps the process alive.
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

  // Keeps the connection for the next request: the response was read to its end.
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

// Options without a prototype: they must not inherit what an app has put on Object.prototype.
function connect ({ host, port, secureContext }, session = undefined, socket = undefined) {
  const options = { __proto__: null, host, port }
  if (secureContext === undefined) return net.connect(options)
  // An IP address is no name that could be asked for by SNI; the certificate is compared with it all the same.
  const servername = net.isIP(host) === 0 ? host : ''
  return tls.connect(Object.assign(options, { socket, secureContext, servername, session, ALPNProtocols: ['http/1.1'] }))
}

// Opens a tunnel through an HTTP proxy (RFC 9110, 9.3.6): CONNECT, and when the proxy says 2xx everything that follows is the
// collector's. done(error) is called at most once; not if the socket is closed before.
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

// Says why there is no tunnel, or ''. In TLS the client speaks first: bytes behind the head are none of the collector's.
function refusal (head, end, target, secrets) {
  const [line, status] = STATUS_LINE.exec(head) ?? []
  if (line === undefined || end === -1) return 'does not answer CONNECT with HTTP/1.1'
  const hint = status === '407' ? "; put the user and password in the proxy's URL" : ''
  if (status.startsWith('2')) return head.length > end + HEAD_END.length ? 'sends more than an answer to CONNECT' : ''
  return `answers '${quoted(line, secrets, 64)}' to CONNECT ${target}${hint}`
}

module.exports = { Connection }
