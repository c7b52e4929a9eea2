'use strict'

// The part of MongoDB's wire protocol that the driver needs to send commands and get answers: OP_MSG with one document, and the driver's
// first OP_QUERY. The packages that tests may install do not include MongoDB.

const net = require('node:net')
const { once } = require('node:events')

const OP_REPLY = 1
const OP_QUERY = 2004
const OP_MSG = 2013

/**
 * @param {object} t a tap test
 * @param {{ serialize, deserialize }} bson
 * @param {(command: object) => object} answer to a command; an error that it throws becomes a server error
 * @returns {Promise<number>} the port
 */
async function startMongo (t, bson, answer) {
  const sockets = new Set()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    let bytes = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (part) => {
      bytes = Buffer.concat([bytes, part])
      while (bytes.length >= 4 && bytes.length >= bytes.readInt32LE(0)) {
        const message = bytes.subarray(0, bytes.readInt32LE(0))
        bytes = bytes.subarray(message.length)
        socket.write(reply(message, bson, answer))
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { for (const socket of sockets) socket.destroy(); server.close() })
  return server.address().port
}

const HELLO = { helloOk: true, isWritablePrimary: true, ismaster: true, maxBsonObjectSize: 16777216, maxMessageSizeBytes: 48000000, maxWriteBatchSize: 100000, minWireVersion: 0, maxWireVersion: 21, logicalSessionTimeoutMinutes: 30, ok: 1 }

function reply (message, bson, answer) {
  const requestId = message.readInt32LE(4)
  const isQuery = message.readInt32LE(12) === OP_QUERY
  const at = isQuery ? message.indexOf(0, 20) + 9 : 21
  const command = bson.deserialize(message.subarray(at, at + message.readInt32LE(at)))
  const document = bson.serialize(answerTo(command, answer))
  const head = Buffer.alloc(isQuery ? 36 : 21)
  head.writeInt32LE(head.length + document.length, 0)
  head.writeInt32LE(requestId, 8)
  head.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12)
  if (isQuery) head.writeInt32LE(1, 32)
  return Buffer.concat([head, document])
}

function answerTo (command, answer) {
  if (command.hello !== undefined || command.ismaster !== undefined || command.isMaster !== undefined) return HELLO
  try {
    return { ...answer(command), ok: 1 }
  } catch ({ message, code }) {
    return { ok: 0, errmsg: message, code, codeName: 'Failed' }
  }
}

module.exports = { startMongo }
