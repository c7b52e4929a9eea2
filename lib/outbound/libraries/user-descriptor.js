'use strict'

// A channel of the user's own. Name and attributes may be functions of theirs, which may throw.

const { setAttributes } = require('../../span/attributes')

const ATTRIBUTES_MAX = 1024 // the span's own limit comes after

/**
 * @param {string} channel
 * @param {{ kind: number, name: string | Function, attributes: object | Function | null }} options
 * @param {Report} report
 */
function userDescriptor (channel, { kind, name, attributes }, report) {
  return {
    kind,
    shouldTrace: () => true,
    name (call) {
      const given = typeof name === 'function' ? attempt(name, call) : name
      return typeof given === 'string' && given !== '' ? given : channel
    },
    attributes (call) {
      const list = []
      const given = typeof attributes === 'function' ? attempt(attributes, call) : attributes
      setAttributes(list, given, ATTRIBUTES_MAX, Infinity)
      return list
    }
  }

  function attempt (fn, call) {
    try {
      return fn(call)
    } catch (error) {
      report.once('LT_WARN_CALLBACK', `a function of outbound.channels['${channel}'] failed; what it should have returned is missing on the span: ${error?.message}`)
      return undefined
    }
  }
}

module.exports = { userDescriptor }
