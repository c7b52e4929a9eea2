'use strict'

// Pipelined requests over plain sockets. They are fast enough for tens of thousands in a test, and may contain any bytes.

const net = require('node:net')

module.exports = { openClients }

const PIPELINED = 10
const STATUS_LINE = Buffer.from('HTTP/1.1 ')

// clients.send(count, (number) => text of a request) resolves when all requests are answered. The connections stay open.
async function openClients (port, connections) {
  const clients = await Promise.all(Array.from({ length: connections }, () => new Client(port).open()))
  return {
    async send (count, textOf) {
      let next = 0
      const take = () => next < count ? textOf(next++) : null
      await Promise.all(clients.map((client) => client.run(take)))
    },
    // Sends the bytes and closes the connection before the answer.
    abort: (text) => new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => socket.write(text, () => socket.destroy()))
      socket.on('error', () => {})
      socket.on('close', resolve)
    }),
    close: () => clients.forEach((client) => client.socket.destroy())
  }
}

class Client {
  #port
  #open = 0
  #take = null
  #done = null
  #tail = Buffer.alloc(0)

  constructor (port) {
    this.#port = port
  }

  open () {
    return new Promise((resolve, reject) => {
      this.socket = net.connect(this.#port, '127.0.0.1', () => resolve(this))
      this.socket.on('error', reject)
      this.socket.on('data', (bytes) => this.#onData(bytes))
    })
  }

  run (take) {
    this.#take = take
    return new Promise((resolve) => {
      this.#done = resolve
      this.#fill()
    })
  }

  #fill () {
    let text = ''
    while (this.#open < PIPELINED && this.#take !== null) {
      const request = this.#take()
      if (request === null) this.#take = null
      else {
        text += request
        this.#open++
      }
    }
    if (text !== '') this.socket.write(text, 'latin1')
    else if (this.#open === 0) this.#done()
  }

  // Bodies in these tests never contain a status line.
  #onData (bytes) {
    const all = Buffer.concat([this.#tail, bytes])
    let at = 0
    for (let found = all.indexOf(STATUS_LINE); found !== -1; found = all.indexOf(STATUS_LINE, at)) {
      this.#open--
      at = found + STATUS_LINE.length
    }
    this.#tail = all.subarray(Math.max(at, all.length - STATUS_LINE.length + 1))
    this.#fill()
  }
}
