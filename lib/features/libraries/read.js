'use strict'

// Reads what a library publishes. If a field is missing, has another type, or throws when read, the result is empty.

const { isIP } = require('node:net')
const { attempt } = require('../../runtime/report.js')
const { read } = require('../../span/attributes.js')

/** A string, or ''. */
function text (object, key) {
  const value = read(object, key)
  return typeof value === 'string' ? value : ''
}

/** A number or string as a string, or ''. */
function label (object, key) {
  const value = read(object, key)
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : typeof value === 'string' ? value : ''
}

/** A number or string as a number, or NaN. */
function numberOf (object, key) {
  return Number(label(object, key) || NaN)
}

/** Pushes host and port, if known. */
function pushServer (list, call) {
  push(list, 'server.address', 'server.port', text(call, 'serverAddress'), call)
}

/** Pushes the address of the connection's other end, if known: an IP address, or the path of a socket. */
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
