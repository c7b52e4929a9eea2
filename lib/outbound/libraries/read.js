'use strict'

// Reading what a library publishes. It may lack a field, hold another type than documented, or throw when
// read: then there is nothing.

function read (object, key) {
  try {
    return object?.[key]
  } catch {
    return undefined
  }
}

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

/** Pushes host and port, where there are any. */
function pushServer (list, call) {
  const address = text(call, 'serverAddress')
  if (address === '') return
  list.push('server.address', address)
  const port = Number(label(call, 'serverPort') || NaN)
  if (Number.isInteger(port) && port > 0 && port < 65536) list.push('server.port', port)
}

function pushText (list, key, value) {
  if (value !== '') list.push(key, value)
}

function lengthOf (value) {
  try {
    return Array.isArray(value) ? value.length : 0
  } catch {
    return 0
  }
}

module.exports = { read, text, label, pushServer, pushText, lengthOf }
