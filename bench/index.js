'use strict'

// npm run bench: what it takes is in options.js, what it measures in cases.js.

const fs = require('node:fs')
const path = require('node:path')
const { cases, HEADLINE_NODE } = require('./cases')
const { parseOptions, usage } = require('./options')
const { describePinning } = require('./run/pinning')
const run = require('./run/run')
const installMissing = require('./install')
const summarise = require('./report/summary')
const consoleTable = require('./report/console-table')

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return console.log(usage)
  if (options.list) return console.log(cases.map(({ name, label }) => `${name.padEnd(28)} ${label}`).join('\n'))

  const chosen = choose(options)
  installMissing(new Set(chosen.map(({ needs }) => needs).filter(Boolean)))
  console.error(`${chosen.length} cases, ${options.profile.rounds} rounds of ${options.profile.seconds} s, ${describePinning()}`)
  const measured = await run(chosen, { ...options, headlineNode: HEADLINE_NODE, progress })
  const rows = summarise(measured)
  console.log(consoleTable(rows))
  if (options.json) fs.writeFileSync(options.json, JSON.stringify({ rows, measured }, null, 1) + '\n')
  if (rows.some(({ faults }) => faults.length > 0)) process.exitCode = 1
}

function choose (options) {
  const wanted = options.cases
    ? named(options.cases)
    : cases.filter(({ sets }) => sets.includes(options.set))
  return withBaselines(wanted).filter((testCase) => {
    const missing = whyNot(testCase)
    if (missing) console.error(`skipped ${testCase.name}: ${missing}`)
    return !missing
  })
}

function named (names) {
  return names.map((name) => {
    const found = cases.find((testCase) => testCase.name === name)
    if (!found) throw new Error(`no case is called "${name}": --list shows them`)
    return found
  })
}

function withBaselines (wanted) {
  const needed = new Set()
  for (const { against = 'bare', also } of wanted) {
    needed.add(cases.find(({ name }) => name === against))
    if (also) needed.add(cases.find(({ name }) => name === also))
  }
  for (const testCase of wanted) needed.add(testCase)
  return [...needed]
}

function whyNot ({ setup }) {
  if (setup.endsWith('/light-trace') && !fs.existsSync(path.join(process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '..'), 'index.js'))) return 'there is no index.js yet'
  return undefined
}

function progress (sentence) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${sentence}`)
  else process.stderr.write(`${sentence}\n`)
}
