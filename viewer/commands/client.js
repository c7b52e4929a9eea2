'use strict'

// The HTTP client that other commands use for a running viewer.

const http = require('node:http')

const DEFAULT_PORT = 4318

// Limits for a request to a server that may not be a viewer: it may never answer, or never stop.
const ASK = { timeout: 500, bytesMax: 10_000 }

class Client {
  /** @param {{ url?: URL, host?: string, port?: number, token?: string }} options */
  constructor ({ url, host = '127.0.0.1', port = DEFAULT_PORT, token }) {
    this.host = url?.hostname.replace(/^\[|\]$/g, '') ?? host
    this.port = url === undefined ? port : Number(url.port || 80)
    this.token = token ?? url?.searchParams.get('token') ?? undefined
  }

  get address () {
    return addressOf(this.host, this.port)
  }

  /** @returns {Promise<number | undefined>} the process id of the viewer that listens there */
  async holder () {
    try {
      const { name, pid } = JSON.parse(await this.text('/api/whoami', ASK))
      return name === 'light-trace' ? Number(pid) : undefined
    } catch {}
  }

  async isThere () {
    return await this.holder() !== undefined
  }

  /** Whether the request is answered with status 200. */
  isAnswered (path, options) {
    return this.text(path, { ...options, ...ASK }).then(() => true, () => false)
  }

  async json (path) {
    return JSON.parse(await this.text(path))
  }

  /** @throws with the viewer's error message */
  async text (path, { bytesMax = Infinity, ...options } = {}) {
    const response = await this.open(path, options)
    const pieces = []
    let length = 0
    for await (const piece of response) {
      pieces.push(piece)
      length += piece.length
      if (length > bytesMax) throw problem(`the answer of ${this.address} is too long: this is not a light-trace viewer`)
    }
    return Buffer.concat(pieces).toString()
  }

  /** @returns {Promise<http.IncomingMessage>} with status 200 */
  open (path, { method = 'GET', headers = {}, body = undefined, timeout = undefined } = {}) {
    return new Promise((resolve, reject) => {
      const authorization = this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }
      const request = http.request({ host: this.host, port: this.port, path, method, headers: { ...authorization, ...headers }, agent: false, timeout }, async (response) => {
        if (response.statusCode === 200) return resolve(response)
        reject(problem(await problemOf(response)))
      })
      request.on('timeout', () => request.destroy(new Error('no answer')))
      request.on('error', (/** @type {NodeJS.ErrnoException} */ error) => reject(error.code === 'ECONNREFUSED'
        ? problem(`no viewer listens at ${this.address}. Start one: npx light-trace app.js`)
        : problem(`${this.address}: ${error.message}`)))
      if (body === undefined || typeof body.pipe !== 'function') return request.end(body)
      body.on('error', (error) => {
        reject(error)
        request.destroy()
      }).pipe(request)
    })
  }
}

const EVERY = ['0.0.0.0', '::'] // values of `host` that mean all addresses of this machine

/** The URL at which this machine reaches a server that listens on `host`. */
function addressOf (host, port) {
  const isOwn = host === undefined || EVERY.includes(host)
  return `http://${isOwn ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
}

function problem (message) {
  return Object.assign(new Error(message), { expected: true })
}

async function problemOf (response) {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) if (text.length < 10_000) text += piece
  try {
    return JSON.parse(text).error ?? text
  } catch {
    return `the answer was ${response.statusCode}: this is not a light-trace viewer`
  }
}

module.exports = { Client, DEFAULT_PORT, EVERY, addressOf, problem }
