'use strict'

// A viewer that runs, for the other commands.

const http = require('node:http')
const { DEFAULT_PORT } = require('./port')

class NoViewer extends Error {
  expected = true
}

class Client {
  /** @param {{ url?: URL, port?: number, token?: string }} options */
  constructor ({ url, port = DEFAULT_PORT, token }) {
    this.host = url?.hostname.replace(/^\[|\]$/g, '') ?? '127.0.0.1'
    this.port = url === undefined ? port : Number(url.port || 80)
    this.token = token ?? url?.searchParams.get('token') ?? undefined
  }

  get address () {
    return `http://${this.host.includes(':') ? `[${this.host}]` : this.host}:${this.port}`
  }

  async isThere () {
    try {
      return (await this.json('/api/whoami')).name === 'light-trace'
    } catch {
      return false
    }
  }

  async json (path) {
    return JSON.parse(await this.text(path))
  }

  /** @throws with what the viewer said */
  async text (path, options = {}) {
    const response = await this.open(path, options)
    const pieces = []
    for await (const piece of response) pieces.push(piece)
    return Buffer.concat(pieces).toString()
  }

  /** @returns {Promise<http.IncomingMessage>} with status 200 */
  open (path, { method = 'GET', headers = {}, body = undefined } = {}) {
    return new Promise((resolve, reject) => {
      const authorization = this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }
      const request = http.request({ host: this.host, port: this.port, path, method, headers: { ...authorization, ...headers }, agent: false }, async (response) => {
        if (response.statusCode === 200) return resolve(response)
        reject(Object.assign(new Error(await problemOf(response)), { expected: true, status: response.statusCode }))
      })
      request.on('error', (/** @type {NodeJS.ErrnoException} */ error) => reject(error.code === 'ECONNREFUSED'
        ? new NoViewer(`no viewer listens at ${this.address}. Start one: npx light-trace app.js`)
        : Object.assign(new Error(`${this.address}: ${error.message}`), { expected: true })))
      if (body === undefined || typeof body.pipe !== 'function') return request.end(body)
      body.on('error', (error) => {
        reject(error)
        request.destroy()
      }).pipe(request)
    })
  }
}

async function problemOf (response) {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) if (text.length < 10_000) text += piece
  try {
    return JSON.parse(text).error ?? text
  } catch {
    return `the answer was ${response.statusCode}: this is no light-trace`
  }
}

module.exports = { Client, NoViewer }
