'use strict'

// Shows each server span of a collector as one line, with the attributes that the tests are about:
//
//   GET /users/:id 500 ERROR error.type=TypeError exception=TypeError: no
//
// The status code is '-' if no headers were sent.

async function picture (collector) {
  const spans = await collector.spans()
  return spans.filter(({ kind }) => kind === 'SERVER').map(line)
}

function line ({ name, attributes, status, events }) {
  const parts = [name, attributes['http.response.status_code'] ?? '-']
  if (status.code !== 'UNSET') parts.push(status.code)
  if (status.message !== '') parts.push(`(${status.message})`)
  if ('error.type' in attributes) parts.push(`error.type=${attributes['error.type']}`)
  for (const { attributes } of events.filter(({ name }) => name === 'exception')) {
    const { 'exception.type': type, 'exception.message': message } = attributes
    parts.push(`exception=${type}${message === undefined ? '' : `: ${message}`}`)
  }
  return parts.join(' ')
}

module.exports = { picture }
