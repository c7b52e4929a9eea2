'use strict'

const { parseArgs } = require('node:util')

const usage = `npm run bench -- [options]
  (none)            the headline cases on the headline Node
  --quick           few cases, short rounds, for tuning
  --publish         all cases; writes bench/results/overhead.json, of which npm run docs:figures makes tables
  --field           light-trace among its field; writes bench/results/field.json with --publish
  --cases a,b       only these and their baselines
  --rounds n        rounds per case
  --seconds s       seconds of load per round
  --warmup s        seconds of load before the first round
  --settle s        the same again, until V8's code keeps its size, so many seconds at most; 0: not
  --connections n   connections of the load
  --pipelining n    requests in flight per connection
  --rate n          requests per second, spread evenly; 0: as fast as it goes
  --node path       run the server processes with this Node binary
  --json path       write the result there
  --list            list the cases`

// Many short rounds: a disturbance from outside spoils one of them, and the median does not see it.
// A published run takes some 13 minutes, its field 20 (each of its servers is settled first), a quick run half of one.
const PROFILES = {
  headline: { rounds: 7, seconds: 1.5, warmup: 2, settle: 0, connections: 50, pipelining: 1, rate: 0 },
  publish: { rounds: 9, seconds: 0.8, warmup: 2, settle: 0, connections: 50, pipelining: 1, rate: 0 },
  field: { rounds: 5, seconds: 1, warmup: 1.5, settle: 18, connections: 50, pipelining: 1, rate: 0 },
  quick: { rounds: 7, seconds: 1, warmup: 1.5, settle: 0, connections: 50, pipelining: 1, rate: 0 }
}

module.exports = { parseOptions, usage }

function parseOptions (args) {
  const text = { type: 'string' }
  const flag = { type: 'boolean', default: false }
  const { values } = parseArgs({
    args,
    options: { quick: flag, publish: flag, field: flag, list: flag, help: flag, cases: text, rounds: text, seconds: text, warmup: text, settle: text, connections: text, pipelining: text, rate: text, node: text, json: text }
  })
  const set = values.field ? 'field' : values.publish ? 'publish' : values.quick ? 'quick' : 'headline'
  const profile = { ...PROFILES[values.quick ? 'quick' : set] }
  for (const key of Object.keys(profile)) {
    if (values[key] === undefined) continue
    profile[key] = Number(values[key])
    if (!(profile[key] >= 0)) throw new Error(`--${key} takes a number, not "${values[key]}"`)
  }
  return { ...values, profile, set, names: values.cases?.split(',').map((name) => name.trim()) }
}
