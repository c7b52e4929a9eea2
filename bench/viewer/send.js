'use strict'

const http = require('node:http')

/** Posts protobuf over one connection. `send` resolves with the status. */
function sender (url) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const send = (body) => new Promise((resolve, reject) => {
    const request = http.request(`${url}/v1/traces`, { method: 'POST', agent, headers: { 'content-type': 'application/x-protobuf', 'content-length': body.length } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    request.on('error', reject).end(body)
  })
  return { send, end: () => agent.destroy() }
}

module.exports = { sender }
