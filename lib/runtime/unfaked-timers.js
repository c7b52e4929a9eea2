'use strict'

// Timers for where fake ones were installed before light-trace was loaded: nothing would be sent, and `close()` would wait for ever.
// Node has two more ways to be called later, which nobody replaces: the timeout of a socket, and the port of a channel.

const { Socket } = require('node:net')
const { MessageChannel } = require('node:worker_threads')

/** Never holds the process, unlike Node's own: what is waited for while the application closes is a socket, which does. */
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
