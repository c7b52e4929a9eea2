'use strict'

// The bounds of explicit buckets. A bucket takes what is less than or equal to its bound.

// Semantic conventions, http.server.request.duration and http.client.request.duration, in seconds.
const HTTP_DURATION = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
// Semantic conventions, db.client.operation.duration, in seconds.
const DB_DURATION = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]
// Semantic conventions, v8js.gc.duration, in seconds.
const GC_DURATION = [0.01, 0.1, 1, 10]
// The conventions give no bounds for bytes, and the SDK's own are made for milliseconds.
const BODY_SIZE = [0, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216]
// The SDK specification's default for instruments without advice: made for milliseconds.
const DEFAULT = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000]

/**
 * Bounds in the form in which a series searches them: the last one is Infinity, so that the search needs
 * no other end.
 * @param {number[]} bounds ascending
 */
function searchable (bounds) {
  const finite = bounds.at(-1) === Infinity ? bounds.slice(0, -1) : bounds
  return Float64Array.of(...finite, Infinity)
}

/** Whether `value` is a list of ascending numbers, as histogram bounds must be. */
function areBounds (value) {
  return Array.isArray(value) && value.every((bound, index) => typeof bound === 'number' && bound > -Infinity &&
    (index === 0 || bound > value[index - 1]))
}

module.exports = { HTTP_DURATION, DB_DURATION, GC_DURATION, BODY_SIZE, DEFAULT, searchable, areBounds }
