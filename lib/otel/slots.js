'use strict'

// The global object of @opentelemetry/api, read and, where the API is not loaded, written as it does it.
//
// All versions 1.x share one object; the first to register seals its `version`, and from then on other
// versions can neither register nor, when newer, read. What is in it has the same shape in all of them, so
// we read it ourselves: whoever holds a slot is found whatever its version. And the API is not loaded by
// us: it costs 20 ms, and applications that do not use it need not pay them.

const API_KEY = Symbol.for('opentelemetry.js.api.1')

module.exports = { slots, fillSlot, emptySlot, clearSlots }

/** `{ version, trace?, context?, propagation?, ... }`, or undefined where nobody has registered anything. */
function slots () {
  return globalThis[API_KEY]
}

/** @returns {boolean} whether the slot was free and the version right */
function fillSlot (name, value, version) {
  if (globalThis[API_KEY] === undefined) {
    globalThis[API_KEY] = Object.defineProperty({}, 'version', { value: version, enumerable: true })
  }
  const there = globalThis[API_KEY]
  if (there.version !== version || taken(there[name])) return false
  there[name] = value
  return true
}

function emptySlot (name) {
  if (globalThis[API_KEY] !== undefined) delete globalThis[API_KEY][name]
}

/** Takes the seal away, where nobody has registered anything since. */
function clearSlots () {
  const there = globalThis[API_KEY]
  if (there !== undefined && Object.keys(there).every((name) => name === 'version')) delete globalThis[API_KEY]
}

function taken (value) {
  return value !== undefined && value !== null
}
