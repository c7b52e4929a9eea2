'use strict'

// Which outgoing calls become spans, and which channels of the user's own.

const { EMPTY, anyOf, attributes, boolean, callback, object, orCallback, text } = require('./checks')

// OpenTelemetry's SpanKind.
const KINDS = Object.freeze(Object.assign(Object.create(null), { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 }))

const checkMembers = object({ http: boolean, undici: boolean, libraries: boolean, channels: checkChannels, propagateTo: callback, graphqlDocuments: boolean })

const checkChannel = object({
  kind: anyOf("'client', 'internal', 'producer', 'consumer', 'server' or a SpanKind", (value) => typeof value === 'string' && value in KINDS, (value) => Object.values(KINDS).includes(value)),
  name: orCallback(text),
  attributes: orCallback(attributes)
})

// true: a channel of a library that light-trace knows, and leaves alone unless asked.
function checkChannelOrTrue (path, value) {
  return value === true ? {} : checkChannel(path, value)
}

module.exports = { checkOutbound, resolveOutbound }

function checkOutbound (path, value) {
  if (value === false) return Object.assign(Object.create(null), { http: false, undici: false, libraries: false })
  return value === true ? EMPTY : checkMembers(path, value)
}

function checkChannels (path, value) {
  const names = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : []
  return object(Object.fromEntries(names.map((name) => [name, checkChannelOrTrue])))(path, value)
}

function resolveOutbound ({ http = true, undici = true, libraries = true, channels = EMPTY, propagateTo = null, graphqlDocuments = false } = EMPTY) {
  const resolved = Object.create(null)
  for (const [name, { kind = 'client', name: spanName = name, attributes = null }] of Object.entries(channels)) {
    resolved[name] = Object.freeze({ kind: KINDS[kind] ?? kind, name: spanName, attributes })
  }
  return Object.freeze({ http, undici, libraries, channels: Object.freeze(resolved), propagateTo, graphqlDocuments })
}
