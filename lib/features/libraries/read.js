'use strict'

// Reading what a library publishes. It may lack a field, hold another type, or throw when read: then there is nothing.

const { isIP } = require('node:net')
const { attempt } = require('../../runtime/report.js')
const { read } = require('../../span/attributes.js')

/** A text that is not empty, or ''. */
function text (object, key) {
  const value = read(object, key)
  return typeof value === 'string' ? value : ''
}

/** A number or its text as a text; or ''. */
function label (object, key) {
  const value = read(object, key)
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : typeof value === 'string' ? value : ''
}

/** A number or its text as a number, or NaN. */
function numberOf (object, key) {
  return Number(label(object, key) || NaN)
}

/** Pushes host and port, where there are any. */
function pushServer (list, call) {
  push(list, 'server.address', 'server.port', text(call, 'serverAddress'), call)
}

/** Pushes the other end of the connection, where it is known: an IP address, or the path of a socket. */
function pushPeer (list, call) {
  const address = text(call, 'serverAddress')
  if (isIP(address) !== 0 || address.startsWith('/')) push(list, 'network.peer.address', 'network.peer.port', address, call)
}

function push (list, addressKey, portKey, address, call) {
  if (address === '') return
  list.push(addressKey, address)
  const port = numberOf(call, 'serverPort')
  if (Number.isInteger(port) && port > 0 && port < 65536) list.push(portKey, port)
}

function pushText (list, key, value) {
  if (value !== '') list.push(key, value)
}

function lengthOf (value) { return attempt(() => Array.isArray(value) ? value.length : 0) ?? 0 }

module.exports = { read, text, label, numberOf, pushServer, pushPeer, pushText, lengthOf }
