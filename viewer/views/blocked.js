'use strict'

// Reads from a request what lib/features/blocked-loop/blocked-loop.js recorded about a blocked event loop. Any sender may have sent the
// span, so the values are not trusted.

const { plain } = require('../otlp/attributes')
const { readEvents } = require('../otlp/span-detail')
const { KIND_SERVER } = require('../otlp/names')
const { plural, safeText } = require('./safe-text')

const EVENT = 'light_trace.blocked_loop'

/**
 * @returns {{ id: string, ms: number, role: string, culprit: string, place: string, isLoader: boolean, code: object | null } | null} the longest
 *   blocked loop of the request. `id`: the same for all requests that were open; `role`: culprit, victim or ''; `culprit`: the trace of the
 *   request whose code ran; `place`: for example `at search (/app/search.js:14)`, and the same as `code`; `isLoader`: Node was loading a module
 */
function blockedOf ({ kind, events, bytes, from, to }) {
  if (kind !== KIND_SERVER || events === 0) return null
  const all = readEvents(bytes, from, to).filter(({ name }) => name === EVENT).map(readBlocked).filter(({ id }) => id !== '')
  return all.sort((a, b) => b.ms - a.ms)[0] ?? null
}

function readBlocked ({ attributes }) {
  const values = Object.fromEntries(attributes.map((attribute) => [attribute.key, plain(attribute)]))
  const text = (key) => typeof values[key] === 'string' ? safeText(values[key]) : ''
  const file = text('code.file.path')
  const line = Number(values['code.line.number'])
  const code = file === '' ? null : { name: text('code.function.name'), file, line, isBefore: values[`${EVENT}.is_before_line`] === true }
  return {
    id: text(`${EVENT}.id`),
    ms: Number(values[`${EVENT}.duration`]) * 1000,
    role: text(`${EVENT}.role`),
    culprit: text(`${EVENT}.culprit.trace_id`),
    place: code === null ? '' : `at ${code.isBefore ? 'or just before ' : ''}${code.name} (${file}:${line})`,
    isLoader: values[`${EVENT}.is_module_loader`] === true,
    code
  }
}

/** 'waited 612 ms while another request blocked the event loop at search (/app/search.js:14), trace 0af7…' */
function blockedText ({ ms, role, culprit, place, isLoader }, duration) {
  if (isLoader) return `waited ${duration(ms)} while Node loaded a module`
  const where = place === '' ? '' : ` ${place}`
  if (role === 'culprit') return `blocked the event loop for ${duration(ms)}${where}`
  return `waited ${duration(ms)} while ${role === 'victim' ? 'another request blocked the event loop' : 'the event loop was blocked'}${where}${culprit === '' ? '' : `, trace ${culprit}`}`
}

/**
 * The lines of a list of requests. Requests that were open during the same blocked loop form a group at the position of the first of them.
 * The group has a heading, and the request whose code blocked the loop comes first.
 */
function blockedTogether (summaries, line, duration) {
  return summaries.flatMap((summary) => {
    if (summary.blocked === null) return line(summary)
    const { id, ms, culprit, place } = summary.blocked
    const stopped = summaries.filter(({ blocked }) => blocked?.id === id)
    if (stopped.length === 1) return line(summary)
    if (stopped[0] !== summary) return []
    const first = stopped.filter((each) => each.id === culprit)
    return [
      `${plural(stopped.length, 'request')} in a blocked event loop, ${duration(ms)}${place === '' ? '' : ` ${place}`}:`,
      ...first.map((each) => `  ${line(each)}  blocked it`),
      ...stopped.filter((each) => !first.includes(each)).map((each) => `  ${line(each)}`)
    ]
  })
}

module.exports = { blockedOf, blockedText, blockedTogether }
