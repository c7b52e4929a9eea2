'use strict'

// Of bench/growth.js.

const { table } = require('./markdown')
const { provenance } = require('./tables')

const whole = (value) => Math.round(value).toLocaleString('en-US')
const column = (title, key) => [title, (row) => whole(row[key]), 'right']
// What each one more costs, from the row above.
const each = (title, key) => [title, (row, above) => above === undefined ? '' : whole((row[key] - above[key]) / (row.n - above.n)), 'right']

const COLUMNS = {
  spans: [column('child spans of a request', 'n'), column('instructions a request', 'instructions'), each('for each one more', 'instructions')],
  attributes: [column('attributes', 'n'), column('instructions a request', 'instructions'), each('for each one more', 'instructions')],
  routes: [column('routes that take turns', 'n'), column('Fastify', 'bare'), column('light-trace', 'instructions'), column('over', 'over')],
  posts: [column('spans of a POST', 'n'), column('light-trace, instructions a request', 'instructions'), column('Fastify, which writes to a socket as often', 'socket'), column('and has an empty POST sent by node:http', 'http')],
  asked: [column('routes that were asked once', 'n'), column('bytes of each, Fastify', 'bare'), column('light-trace', 'bytes'), column('over', 'over')],
  connections: [column('idle connections', 'n'), column('bytes of each, Fastify', 'bare'), column('light-trace', 'bytes'), column('over', 'over')],
  open: [column('requests in flight', 'n'), column('bytes of each, Fastify', 'bare'), column('light-trace', 'bytes'), column('over', 'over')],
  collector: [column('the collector answers after, ms', 'delayMs'), column('requests', 'requests'), column('POSTs', 'posts'), column('spans lost', 'lost')]
}

function growthTables ({ tables, ...result }) {
  const parts = tables.map(({ name, rows }) => table(COLUMNS[name].map(([title, cell, side]) => [title, (row) => cell(row, rows[rows.indexOf(row) - 1]), side]), rows))
  return [...parts, provenance(result)].join('\n\n')
}

module.exports = { growthTables }
