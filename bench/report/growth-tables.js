'use strict'

// Makes the tables of bench/growth.js.

const { table } = require('./markdown')
const { provenance } = require('./tables')
const { codeOf } = require('../run/code')

const whole = (value) => (Math.round(value) + 0).toLocaleString('en-US')
const column = (title, key) => [title, (row) => whole(row[key]), 'right']
// The cost of each additional one, compared with the row above.
const each = (title, key) => [title, (row, above) => above === undefined ? '' : whole((row[key] - above[key]) / (row.n - above.n)), 'right']

const COLUMNS = {
  spans: [column('child spans of a request', 'n'), column('instructions per request', 'instructions'), each('per additional one', 'instructions')],
  attributes: [column('attributes', 'n'), column('instructions per request', 'instructions'), each('per additional one', 'instructions')],
  routes: [column('routes in turn', 'n'), column('Fastify', 'bare'), column('light-trace', 'instructions'), column('difference', 'over')],
  posts: [column('spans per POST', 'n'), column('light-trace, instructions per request', 'instructions'), column('Fastify, writing to a socket as often', 'socket'), column('Fastify, sending an empty POST by node:http as often', 'http')],
  rates: [column('requests a second', 'n'), column('Fastify, instructions per request', 'bare'), column('light-trace', 'instructions'), column('difference', 'over')],
  asked: [column('routes requested once', 'n'), column('bytes each: Fastify', 'bare'), column('light-trace', 'bytes'), column('difference', 'over')],
  connections: [column('idle connections', 'n'), column('bytes each: Fastify', 'bare'), column('light-trace', 'bytes'), column('difference', 'over')],
  open: [column('requests in flight', 'n'), column('bytes each: Fastify', 'bare'), column('light-trace', 'bytes'), column('difference', 'over')],
  collector: [column('delay of the collector, ms', 'delayMs'), column('requests', 'requests'), column('POSTs', 'posts'), column('spans lost', 'lost')]
}

function growthTables ({ tables, ...result }) {
  const parts = tables.map(({ name, rows }) => table(COLUMNS[name].map(([title, cell, side]) => [title, (row) => cell(row, rows[rows.indexOf(row) - 1]), side]), rows))
  return [...parts, provenance(result, codeOf(tables, 'table by table'))].join('\n\n')
}

// [label, table, key, unit]
const SHORT = [
  ['one more child span in a request', 'spans', 'instructions', 'instructions'],
  ['one more attribute (from the 129th on, it is dropped and counted)', 'attributes', 'instructions', 'instructions'],
  ['one more route, requested in turn', 'routes', 'over', 'instructions'],
  ['a route requested once', 'asked', 'over', 'bytes'],
  ['an idle connection', 'connections', 'over', 'bytes'],
  ['a request in flight', 'open', 'over', 'bytes']
]

/** A summary: the cost per additional one between consecutive points, or the size at a point, for the last two points. */
function growthShort ({ tables, ...result }) {
  const rows = SHORT.flatMap(([label, name, key, unit]) => {
    const found = tables.find((table) => table.name === name)
    return found === undefined ? [] : [{ label, unit, points: found.rows, commit: found.commit, hot: found.hot, key }]
  })
  const cost = ({ points, key, unit }, i) => {
    const [before, at] = points.slice(points.length - 2 + i - 1, points.length + i - 1)
    return unit === 'bytes' ? `${whole(at[key])} bytes` : `${whole((at[key] - before[key]) / (at.n - before.n))} instructions`
  }
  const [posts, rates] = ['posts', 'rates'].map((wanted) => tables.find(({ name }) => name === wanted))
  return [
    table([
      ['', ({ label }) => label],
      ['few', (row) => `${cost(row, 0)} (${whole(row.points.at(-2).n)})`, 'right'],
      ['many', (row) => `${cost(row, 1)} (${whole(row.points.at(-1).n)})`, 'right']
    ], rows),
    '',
    `The cost or size of one, over Fastify alone, at the count in brackets. Node ${result.node.slice(1)}, ${codeOf(rows)}.`,
    ...posts === undefined ? [] : ['', postsShort(posts.rows)],
    ...rates === undefined ? [] : ['', ratesShort(rates)]
  ].join('\n')
}

/** The cost of a POST, and the share of it per request when ten requests share one, compared with thousands. */
function postsShort (rows) {
  const [shared] = rows.slice(-1)
  const at = (n) => rows.find((row) => row.n === n)
  const more = (n, key) => at(n)[key] - shared[key]
  return `A **POST** to the collector takes ${whole(more(1, 'instructions') / 1000)},000 instructions. For comparison, writing the bytes to a socket at once, without reading a response, takes ${whole(more(1, 'socket') / 1000)},000, and an empty POST by \`node:http\` takes ${whole(more(1, 'http') / 1000)},000. Spans wait a second for others (\`buffer.flushDelayMs\`). At ten requests a second, ten share a POST, which is ${whole(more(10, 'instructions'))} instructions per request. With a delay of five seconds, OpenTelemetry's default, it is ${whole(more(50, 'instructions'))}.`
}

/** The cost of a request at different request rates. */
function ratesShort ({ rows, commit }) {
  return [
    table([
      ['requests a second', ({ n }) => whole(n), 'right'],
      ['Fastify, instructions per request', ({ bare }) => whole(bare), 'right'],
      ['light-trace', ({ instructions }) => whole(instructions), 'right'],
      ['difference', ({ over }) => `+${whole(over)}`, 'right']
    ], rows),
    '',
    `A hello world, sampled and delivered. There is one POST a second, and one [sample](../docs/slow.md#what-it-costs) per request, up to 200 a second. Every seventh sample reads the CPU time. Requests are counted one after the other, with as many POSTs and samples as at that rate. A service with little load runs the same instructions more slowly, because its data is no longer in the CPU's caches. Commit ${commit.slice(0, 7)}.`
  ].join('\n')
}

module.exports = { growthTables, growthShort }
