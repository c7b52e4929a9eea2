'use strict'

// Request bodies like an exporter's: each trace has a request with its attributes, and a call below it.

const { encodeRequest } = require('../../test/support/otlp-encode')
const { spansOf } = require('../../test/viewer/support')

const SERVER = {
  'http.request.method': 'GET',
  'http.route': '/users/:id',
  'http.response.status_code': 200,
  'url.scheme': 'http',
  'url.path': '/users/7',
  'network.protocol.version': '1.1',
  'client.address': '127.0.0.1',
  'network.peer.address': '127.0.0.1',
  'network.peer.port': 43210,
  'server.address': 'localhost',
  'server.port': 3000,
  'user_agent.original': 'bench'
}
const CLIENT = { 'http.request.method': 'GET', 'server.address': 'stock', 'server.port': 80, 'url.full': 'http://stock/items/7', 'http.response.status_code': 200 }

/** @returns {(number) => Buffer} the same body each time, with trace ids unique to the number; the buffer is reused */
function bodies (traces, spansPerTrace = 2) {
  const first = 0x7f7f7f7f00000000n
  const spans = []
  for (let trace = 0; trace < traces; trace++) {
    for (let id = 1; id <= spansPerTrace; id++) {
      const isRoot = id === 1
      spans.push({ trace: first + BigInt(trace), id, ...(!isRoot && { parent: 1 }), name: isRoot ? 'GET /users/:id' : 'GET', kind: isRoot ? 2 : 3, at: id, ms: 10 / id, attributes: isRoot ? SERVER : CLIENT })
    }
  }
  const body = encodeRequest(spansOf(spans))
  const mark = Buffer.from('0000000000000000' + '7f7f7f7f', 'hex')
  const places = []
  for (let at = body.indexOf(mark); at !== -1; at = body.indexOf(mark, at + 1)) places.push(at)
  return (number) => {
    for (const at of places) body.writeUInt32BE(number, at + 4)
    return body
  }
}

module.exports = { bodies }
