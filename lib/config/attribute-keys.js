'use strict'

// Attribute keys as options name them: a single key, or a prefix that ends with `.*`.

const { anyOf } = require('./checks.js')

// Attributes that a resource must have.
const REQUIRED = new Set(['service.name', 'telemetry.sdk.name', 'telemetry.sdk.language', 'telemetry.sdk.version'])

const omittedKey = anyOf("a key such as 'client.address' or a prefix such as 'network.peer.*', and neither service.name nor telemetry.sdk.*, which OpenTelemetry requires",
  (value) => typeof value === 'string' && isPlain(value.replace(/\.\*$/, '')) && !REQUIRED.has(value))

function isPlain (key) { return key.trim() !== '' && !key.includes('*') }

/** Converts each key to `{ text, isPrefix }`. For `network.peer.*` the text is `network.peer.`. */
function patternsOf (keys) {
  return keys.map((key) => key.endsWith('.*') ? { text: key.slice(0, -1), isPrefix: true } : { text: key, isPrefix: false })
}

/** Whether one of the patterns matches the key. */
function isNamed (patterns, key) {
  return patterns.some(({ text, isPrefix }) => isPrefix ? key.startsWith(text) : key === text)
}

/** Deletes omitted attributes from an object, except required ones. */
function deleteOmitted (attributes, keys) {
  const patterns = patternsOf(keys)
  for (const key of Object.keys(attributes)) if (isNamed(patterns, key) && !REQUIRED.has(key)) delete attributes[key]
}

module.exports = { omittedKey, patternsOf, isNamed, deleteOmitted }
