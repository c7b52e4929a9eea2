'use strict'

// Timers for processes that installed fake timers before light-trace was loaded. With those, nothing would be sent, and `close()` would
// never finish. These timers use two other ways to be called later, which no test library replaces: a socket's timeout and a message port.

const { Socket } = require('node:net')
const { MessageChannel } = require('node:worker_threads')

/** Never keeps the process alive, unlike Node's timers. While the application closes, the exporter's socket does that. */
class SocketTimer {
  #socket = new Socket()

  constructor (fn, ms, isRepeated) {
    this.#socket.on('timeout', () => {
      this.#socket.setTimeout(isRepeated ? ms : 0)
      fn()
    })
    this.#socket.setTimeout(Math.max(1, ms))
  }

  clear () { this.#socket.setTimeout(0) }
  ref () { return this }
  unref () { return this }
}

function setImmediate (fn, ...values) {
  const { port1, port2 } = new MessageChannel()
  port1.on('message', () => {
    port1.close()
    fn(...values)
  })
  port2.postMessage(null)
}

const clear = (timer) => timer?.clear()

module.exports = {
  setTimeout: (fn, ms) => new SocketTimer(fn, ms, false),
  clearTimeout: clear,
  setInterval: (fn, ms) => new SocketTimer(fn, ms, true),
  clearInterval: clear,
  setImmediate
}
