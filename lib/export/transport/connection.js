'use strict'

// One connection to the collector, for one request after the other.
//
// Not node:http: a process that uses its client makes each request that its server answers dearer, because V8 then has
// to compile for both what the two share (docs/overhead.md).

const net = require('node:net')

const KEEP_ALIVE_DELAY_MS = 1000

class Connection {
  #socket = null
  #exchange = null // the Attempt of the request that is under way
  #error = null
  #isReady = false
  #isHeld = false
  #isOpen = true
  wasUsed = false // it has brought a whole response before

  // onSession(session) is given what makes the next handshake shorter, null where one failed. onGone() is called when its
  // socket is closed, and not before; never in this turn.
  constructor (address, session, onSession, onGone) {
    const { proxy, secureContext } = address
    // A proxy forwards what it can read. Through a tunnel the collector itself is spoken to.
    const isTunnel = proxy !== null && secureContext !== undefined
    const first = proxy ?? address
    try {
      this.#socket = first.secureContext === undefined ? connect(first) : connectSecurely(first, isTunnel ? undefined : session)
    } catch (error) { // Node's permission model
      this.#error = error
      process.nextTick(() => this.#onClose(onGone))
      return
    }
    if (isTunnel) this.#listenToProxy(address, session, onSession, onGone)
    else this.#listen(readyEventOf(first), onSession, onGone)
  }

  #listenToProxy (address, session, onSession, onGone) {
    const { host, port, proxy } = address
    const socket = this.#socket
    const onClose = () => this.#onClose(onGone)
    this.#prepare()
    socket.on('error', (error) => { this.#error = error })
    socket.on('close', onClose)
    socket.once(readyEventOf(proxy), () => require('./tunnel').openTunnel(socket, `${net.isIPv6(host) ? `[${host}]` : host}:${port}`, proxy.authorization, (error) => {
      if (error !== null) {
        socket.destroy(error)
        return
      }
      // From here on the inner socket's events are this connection's.
      socket.off('close', onClose)
      this.#socket = connectSecurely(address, session, socket)
      socket.on('close', () => this.#socket.destroy())
      this.#listen('secureConnect', onSession, onGone)
      this.hold(this.#isHeld)
    }))
  }

  #prepare () {
    const socket = this.#socket
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
    socket.unref()
    // Each address that happy eyeballs tries gets a handle of its own, which starts out referenced.
    socket.on('connectionAttempt', () => this.hold(this.#isHeld))
  }

  // Before `secureConnect` nobody knows who is at the other end.
  #listen (readyEvent, onSession, onGone) {
    const socket = this.#socket
    this.#prepare()
    socket.once(readyEvent, () => this.#onReady())
    socket.on('session', onSession)
    socket.on('data', (bytes) => this.#onData(bytes))
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error) => {
      this.#error = error
      onSession(null)
    })
    socket.on('close', () => this.#onClose(onGone))
  }

  get isFree () {
    return this.#isOpen && this.#exchange === null
  }

  // `exchange` has the methods onReady(), onData(bytes), onEnd() and onClosed(error), which are called until `release` or
  // `destroy`; onReady may be called in this turn.
  serve (exchange) {
    this.#exchange = exchange
    if (this.#isReady) exchange.onReady()
  }

  // `parts`: the first is text, the others Buffers, which must not change before onWritten() is called.
  write ([head, ...parts], onWritten) {
    const socket = this.#socket
    socket.cork()
    socket.write(head, 'latin1')
    const last = parts.pop()
    for (const bytes of parts) socket.write(bytes)
    socket.write(last, (error) => {
      // On Node 20 what was cut off by `destroy` is no error.
      if (!error && !socket.destroyed) onWritten()
    })
    socket.uncork()
  }

  // While held it keeps the process alive.
  hold (isHeld) {
    this.#isHeld = isHeld
    if (this.#socket === null || this.#socket.destroyed) return
    if (isHeld) this.#socket.ref()
    else this.#socket.unref()
  }

  // The response was read to its end: kept for the next request.
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

  #onReady () {
    this.#isReady = true
    this.#exchange?.onReady()
  }

  #onData (bytes) {
    if (this.#exchange === null) this.destroy() // nobody asked
    else this.#exchange.onData(bytes)
  }

  #onEnd () {
    this.#isOpen = false // before anybody asks for a connection because the exchange is over
    this.#exchange?.onEnd()
    this.#socket.destroy()
  }

  #onClose (onGone) {
    const exchange = this.#exchange
    this.#exchange = null
    this.#isOpen = false
    onGone()
    exchange?.onClosed(this.#error ?? Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' }))
  }
}

function readyEventOf ({ secureContext }) {
  return secureContext === undefined ? 'connect' : 'secureConnect'
}

// Options without a prototype: what somebody has put on Object.prototype is none of theirs.
function connect ({ host, port }) {
  return net.connect({ __proto__: null, host, port })
}

// An IP address is no name that could be asked for by SNI; the certificate is held against it all the same.
function connectSecurely ({ host, port, secureContext }, session, socket) {
  const servername = net.isIP(host) === 0 ? host : ''
  return require('node:tls').connect({ __proto__: null, host, port, socket, secureContext, servername, session, ALPNProtocols: ['http/1.1'] })
}

module.exports = { Connection }
