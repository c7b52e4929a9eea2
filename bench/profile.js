'use strict'

// npm run bench:profile -- [--cases lighttrace-100] [--seconds 5] [--top 30] [--node path]: where
// a request's time goes. Each case and its baseline are loaded under V8's profiler; shown are the groups
// side by side, then the functions of the case. A profiled request is slower than one that is not:
// shares are to be read, not sums. The .cpuprofile files stay in .cache/profiles for a viewer.

const path = require('node:path')
const fs = require('node:fs')
const { parseArgs } = require('node:util')
const { cases, HEADLINE_NODE } = require('./cases')
const chooseCases = require('./choose')
const installMissing = require('./install')
const { run } = require('./run/run')
const readProfile = require('./report/cpu-profile')

const FOLDER = path.join(__dirname, '../.cache/profiles')

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { values } = parseArgs({
    options: {
      cases: { type: 'string', default: 'lighttrace-100' },
      seconds: { type: 'string', default: '5' },
      top: { type: 'string', default: '30' },
      pipelining: { type: 'string', default: '1' },
      node: { type: 'string' }
    }
  })
  const profile = { rounds: 1, seconds: Number(values.seconds), warmup: 3, connections: 50, pipelining: Number(values.pipelining), rate: 0 }
  const chosen = chooseCases(cases, { names: values.cases.split(',') })
  installMissing(new Set(chosen.flatMap(({ needs = [] }) => needs)))
  const measured = await run(chosen, { profile, node: values.node, headlineNode: HEADLINE_NODE, profileFolder: FOLDER, progress: (sentence) => console.error(sentence) })
  const profiles = measured.map(({ testCase, rounds: [{ cpuMicrosPerRequest, requests }] }) => ({
    testCase,
    cpuMicrosPerRequest,
    ...readProfile(JSON.parse(fs.readFileSync(path.join(FOLDER, `${testCase.name}.cpuprofile`), 'utf8')), requests)
  }))
  printGroups(profiles)
  for (const entry of profiles) printFunctions(entry, Number(values.top))
}

function printGroups (profiles) {
  const names = [...new Set(profiles.flatMap(({ groups }) => Object.keys(groups)))]
    .sort((a, b) => (profiles.at(-1).groups[b] ?? 0) - (profiles.at(-1).groups[a] ?? 0))
  console.log('\nµs per request'.padEnd(41) + profiles.map(({ testCase }) => testCase.name.padStart(24)).join(''))
  for (const name of names) console.log(name.padEnd(40) + profiles.map(({ groups }) => (groups[name] ?? 0).toFixed(2).padStart(24)).join(''))
  console.log('sum, profiled'.padEnd(40) + profiles.map(({ groups }) => Object.values(groups).reduce((a, b) => a + b, 0).toFixed(2).padStart(24)).join(''))
}

function printFunctions ({ testCase, functions }, top) {
  console.log(`\n${testCase.name}: µs per request in the function itself`)
  for (const { name, place, micros } of functions.slice(0, top)) console.log(`${micros.toFixed(3).padStart(8)}  ${name}  ${place}`)
}
