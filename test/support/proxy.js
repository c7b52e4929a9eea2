'use strict'

// A forward proxy on node:http. It forwards requests with an absolute URL and opens tunnels for CONNECT.
//
//   const proxy = await startProxy(t, { tls, auth: 'user:password' })
//   proxy.url        http://127.0.0.1:<port>, or https: with `tls`
//   proxy.seen       [{ method, target, authorization }]
//   proxy.connections   in total
//   proxy.refuse = 503; proxy.isHanging = true; await proxy.down(); await proxy.up()

const http = require('node:http')
const https = require('node:https')
const net = require('node:net')
const { once } = require('node:events')
const { listenAnew } = require('./new-port')

async function startProxy (t, options = {}) {
  const proxy = new Proxy_(options)
  await proxy.up()
  t.teardown(() => proxy.down())
  return proxy
}

class Proxy_ {
  seen = []
  connections = 0
  refuse = 0
  isHanging = false
  #tls
  #auth
  #port = 0
  #server = null
  #sockets = new Set()
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

  constructor ({ tls, auth }) {
    this.#tls = tls
    this.#auth = auth === undefined ? undefined : `Basic ${Buffer.from(auth).toString('base64')}`
  }

  get url () {
    return `http${this.#tls === undefined ? '' : 's'}://127.0.0.1:${this.#port}`
  }

  async up () {
    this.#server = this.#tls === undefined ? http.createServer() : https.createServer(this.#tls)
    this.#server.on('connection', (socket) => {
      this.connections++
      this.#keep(socket)
    })
    this.#server.on('tlsClientError', () => {})
    this.#server.on('request', (req, res) => this.#forward(req, res))
    this.#server.on('connect', (req, socket, head) => this.#tunnel(req, socket, head))
    this.#port = await listenAnew(this.#server, { port: this.#port })
  }

  async down () {
    this.#agent.destroy()
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #keep (socket) {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
  }

  // Returns the status with which the proxy itself answers, or 0 to forward the request.
  #verdict ({ method, url, headers }) {
    const authorization = headers['proxy-authorization']
    this.seen.push({ method, target: url, authorization })
    return authorization === this.#auth ? this.refuse : 407
  }

  #forward (req, res) {
    const verdict = this.#verdict(req)
    if (this.isHanging) return
    if (verdict !== 0 || !URL.canParse(req.url)) {
      res.writeHead(verdict || 400).end()
      req.resume()
      return
    }
    const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = req.headers
    const { hostname, port, pathname, search } = new URL(req.url)
    const upstream = http.request({ agent: this.#agent, hostname, port, path: pathname + search, method: req.method, headers }, (answer) => {
      res.writeHead(answer.statusCode, answer.headers)
      answer.pipe(res)
    })
    upstream.on('error', () => res.headersSent ? res.destroy() : res.writeHead(502).end())
    req.pipe(upstream)
  }

  #tunnel (req, socket, head) {
    this.#keep(socket)
    const verdict = this.#verdict(req)
    if (this.isHanging) return
    if (verdict !== 0) {
      socket.end(`HTTP/1.1 ${verdict} ${http.STATUS_CODES[verdict]}\r\ncontent-length: 0\r\n\r\n`)
      return
    }
    const { hostname, port } = new URL(`http://${req.url}`)
    const upstream = net.connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n')
      upstream.write(head)
      socket.pipe(upstream).pipe(socket)
    })
    this.#keep(upstream)
    upstream.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
    upstream.on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  }
}

module.exports = { startProxy }
