'use strict'

// What a span says of a blocked event loop, as one sentence: lib/fastify/blocked-loop.js records it.

const { plain } = require('../otlp/attributes')
const { safeText } = require('./safe-text')

const EVENT = 'light_trace.blocked_loop'

/**
 * @param {{ name: string, attributes: object[] }[]} events of a span
 * @param {(ms: number) => string} duration in words
 * @returns {{ id: string, culprit: string, text: string } | null} of the longest: what its requests have in common, and the trace of the one that ran
 */
function blockedOf (events, duration) {
  const all = events.filter(({ name }) => name === EVENT).map(({ attributes }) => Object.fromEntries(attributes.map((attribute) => [attribute.key, plain(attribute)])))
  const of = (values, name) => values[`${EVENT}.${name}`]
  const [longest] = all.sort((a, b) => Number(of(b, 'duration')) - Number(of(a, 'duration')))
  if (typeof of(longest ?? {}, 'id') !== 'string' || of(longest, 'id') === '') return null
  const text = (value) => typeof value === 'string' ? safeText(value, 200) : ''
  const [role, file, culprit] = [of(longest, 'role'), text(longest['code.file.path']), text(of(longest, 'culprit.trace_id'))]
  const ms = duration(Number(of(longest, 'duration')) * 1000)
  const place = `${of(longest, 'is_before_line') === true ? 'at or just before' : 'at'} ${text(longest['code.function.name'])} (${file}:${Number(longest['code.line.number'])})`
  const where = file === '' ? '' : ` ${place}`
  const sentence = role === 'culprit'
    ? `blocked the event loop for ${ms}${where}`
    : `waited ${ms} while ${role === 'victim' ? 'another request blocked the event loop' : 'the event loop was blocked'}${where}${culprit === '' ? '' : `, trace ${culprit}`}`
  return { id: text(of(longest, 'id')), culprit, text: sentence }
}

module.exports = { blockedOf }
