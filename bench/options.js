'use strict'

const { parseArgs } = require('node:util')

const usage = `npm run bench -- [options]
  (none)            all cases on the headline Node
  --quick           few cases, short rounds, for tuning
  --cases a,b       only these (bare is always measured with them)
  --rounds n        rounds per case
  --seconds s       seconds of load per round
  --warmup s        seconds of load before the first round
  --connections n   connections of the load
  --pipelining n    requests in flight per connection
  --rate n          requests per second, spread evenly; 0: as fast as it goes
  --node path       run the server processes with this Node binary
  --json path       write the result file there
  --list            list the cases`

const PROFILES = {
  full: { rounds: 5, seconds: 4, warmup: 4, connections: 50, pipelining: 1, rate: 0 },
  quick: { rounds: 3, seconds: 2, warmup: 2, connections: 50, pipelining: 1, rate: 0 }
}

module.exports = { parseOptions, usage }

function parseOptions (args) {
  const text = { type: 'string' }
  const flag = { type: 'boolean', default: false }
  const { values } = parseArgs({
    args,
    options: { quick: flag, list: flag, help: flag, cases: text, rounds: text, seconds: text, warmup: text, connections: text, pipelining: text, rate: text, node: text, json: text }
  })
  const profile = { ...PROFILES[values.quick ? 'quick' : 'full'] }
  for (const key of Object.keys(profile)) {
    if (values[key] === undefined) continue
    profile[key] = Number(values[key])
    if (!(profile[key] >= 0)) throw new Error(`--${key} takes a number, not "${values[key]}"`)
  }
  return {
    profile,
    set: values.quick ? 'quick' : 'headline',
    cases: values.cases?.split(',').map((name) => name.trim()),
    node: values.node,
    json: values.json,
    list: values.list,
    help: values.help
  }
}
