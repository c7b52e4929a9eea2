'use strict'

// node:http without a framework: bare, with one AsyncLocalStorage, or with NodeSDK.

const { AsyncLocalStorage } = require('node:async_hooks')

module.exports = async ({ storage, traced }) => {
  const tracing = traced ? await require('../../server/setups/node-sdk')({ fastify: false }) : {}
  const http = require('node:http')
  const als = storage ? new AsyncLocalStorage() : null
  return {
    ...tracing,
    async start () {
      const server = http.createServer(als ? (request, response) => als.run({ request }, handle, request, response) : handle)
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
      return { port: server.address().port }
    }
  }
}

async function handle (request, response) {
  if (request.url === '/') return sendJson(response, { hello: 'world' })
  if (request.url === '/echo' && request.method === 'POST') return sendJson(response, await readJson(request))
  if (request.url !== '/text') response.statusCode = 404
  response.setHeader('content-type', 'text/plain; charset=utf-8')
  response.end('hello world')
}

function sendJson (response, value) {
  const text = JSON.stringify(value)
  response.setHeader('content-type', 'application/json; charset=utf-8')
  response.setHeader('content-length', Buffer.byteLength(text))
  response.end(text)
}

async function readJson (request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}
