'use strict'

// Keys of attributes as options name them: one key, or a prefix that ends with `.*`.

const { anyOf } = require('./checks.js')

// What a resource must have.
const REQUIRED = new Set(['service.name', 'telemetry.sdk.name', 'telemetry.sdk.language', 'telemetry.sdk.version'])

const omittedKey = anyOf("a key such as 'client.address' or a prefix such as 'network.peer.*', and neither service.name nor telemetry.sdk.*, which OpenTelemetry requires",
  (value) => typeof value === 'string' && isPlain(value.replace(/\.\*$/, '')) && !REQUIRED.has(value))

function isPlain (key) { return key.trim() !== '' && !key.includes('*') }

/** Each key as `{ text, isPrefix }`: of `network.peer.*` the text is `network.peer.`. */
function patternsOf (keys) {
  return keys.map((key) => key.endsWith('.*') ? { text: key.slice(0, -1), isPrefix: true } : { text: key, isPrefix: false })
}

/** Whether one of `patternsOf` names the key. */
function isNamed (patterns, key) {
  return patterns.some(({ text, isPrefix }) => isPrefix ? key.startsWith(text) : key === text)
}

/** Deletes what is omitted, and not required, of an object. */
function deleteOmitted (attributes, keys) {
  const patterns = patternsOf(keys)
  for (const key of Object.keys(attributes)) if (isNamed(patterns, key) && !REQUIRED.has(key)) delete attributes[key]
}

module.exports = { omittedKey, patternsOf, isNamed, deleteOmitted }
