'use strict'

// npm run bench:cost runs every command that produces published cost figures, then updates the tables. The README's figures come
// first, then the timings, which need two quiet cores. Instruction counts are correct on a busy machine too, and are written row by
// row, so you can stop the run at any time.
//
// Commit first: a row is published with its commit, and docs:figures refuses a commit that is not in the history (run/code.js).
//
//   --list            lists the steps and roughly how long each takes
//   --readme          light-trace's figures in the README: run this after changing a hot file
//   --only v8         only the named steps; can be repeated
//   --from v8         this step and all later ones
//   --minutes 55      starts no step that would not finish in time, and stops the running step when time is up
//
// If a step fails, the other steps still run, and the failure is listed at the end.

const path = require('node:path')
const { parseArgs } = require('node:util')
const { run } = require('../scripts/run')
const { HEADLINE_NODE } = require('./cases')
const { readResults } = require('./report/results-file')
const { describeCommit } = require('./run/machine')

const ROOT = path.join(__dirname, '..')
const COUNT = ['instructions', '--quick', '--windows', '1', '--parallel', '2', '--publish']
const COUNT_REAL = ['instructions', '--quick', '--parallel', '2', '--windows', '2', '--requests', '3000', '--publish']
const cases = (names) => names.split(' ').flatMap((name) => ['--case', name])
const counted = (names, ...more) => [...COUNT, ...more, ...cases(names)]
const nodes = (...majors) => majors.flatMap((major) => ['--node', String(major)])

const README = ['seeds', 'seeds-one-by-one', 'real']
// [name, minutes on two quiet cores, [script in this folder, ...its arguments]]
const STEPS = [
  ['seeds', 5, ['seeds.js', '--publish']],
  ['seeds-one-by-one', 5, ['seeds.js', '--pipelining', '1', '--publish']],
  ['real', 12, [...COUNT_REAL, ...cases('floor-real real real-unsampled stock-real real-proxied')]],
  ['real-nodes', 12, [...COUNT_REAL, ...nodes(26, 22, 20), ...cases('real')]],
  ['seeds-nodes', 14, ['seeds.js', ...nodes(20, 22, 26), '--publish']],
  ['seeds-nodes-one-by-one', 14, ['seeds.js', ...nodes(20, 22, 26), '--pipelining', '1', '--publish']],
  ['seeds-real', 16, ['seeds.js', '--route', 'checkout', ...nodes(20, 22, 24, 26), '--publish']],
  ['v8', 5, ['v8.js', '--publish']],
  ['micro', 1, ['micro/index.js', '--publish']],
  ['next-tick', 2, ['next-tick.js', '--publish']],
  ['viewer', 2, ['viewer/index.js']],
  ['sizes', 1, ['run/installed-size.js']],
  ['log-lines', 3, ['log-lines.js', '--publish']],
  ['faults', 10, ['faults.js', '--publish']],
  ['counted', 7, counted('floor unsampled disabled delivered down traceparent logger attributes')],
  ['calls', 7, counted('redis fetch', '--counted')],
  ['rivals', 4, counted('fastify-otel nodesdk-http', '--counted')],
  ['node22', 2, counted('floor delivered', '--node', '22')],
  ['startup', 8, ['startup.js']],
  ['metrics', 16, ['instructions', '--parallel', '2', '--publish', '--counted', ...cases('delivered-long metrics unsampled-long metrics-unsampled one-percent metrics-one-percent')]],
  ['other-metrics', 2, counted('fastify-metrics', '--counted')],
  ['node26', 2, counted('floor delivered', '--node', '26')],
  ['node20', 2, counted('floor delivered', '--node', '20')],
  ['parts', 4, counted('hook hook-record hook-context hook-clock not-sent unrouted', '--counted')],
  // Repeats each case until its interval is half of the smallest difference that matters.
  ['repeated', 15, ['instructions', '--parallel', '2', '--publish', ...cases('floor unsampled disabled delivered')]],
  ['real-rest', 25, [...COUNT_REAL, ...cases('floor-real-pg real-pg floor-real-fetch real-fetch')]],
  ['real-rest-nodes', 60, [...COUNT_REAL, ...nodes(26, 22, 20), ...cases('floor-real real-unsampled stock-real floor-real-pg real-pg floor-real-fetch real-fetch')]],
  ['growth', 15, ['growth.js', '--publish']]
]
// Published rows of bench/instructions that have no step of their own. Baselines are counted along with the cases that use them.
const named = new Set(STEPS.flatMap(([, , args]) => args))
const { rows } = readResults('instructions').nodes[HEADLINE_NODE]
STEPS.push(['counted-rest', 60, counted(rows.map(({ name }) => name).filter((name) => !named.has(name) && !name.startsWith('bare')).join(' '))])

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { values } = parseArgs({
    options: {
      list: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      readme: { type: 'boolean', default: false },
      from: { type: 'string' },
      minutes: { type: 'string', default: 'Infinity' }
    }
  })
  const steps = chooseSteps(values)
  if (values.list) return console.table(steps.map(([name, minutes, args]) => ({ name, minutes, command: commandOf(args) })))
  if (describeCommit(ROOT).dirty) throw new Error('commit first: each row is published with the commit that it measured')
  const until = Date.now() + Number(values.minutes) * 60_000
  const results = []
  for (const [name, minutes, args] of steps) results.push(await runStep(name, minutes, args, until))
  const { code } = await run(process.execPath, ['bench/report/publish.js'], { cwd: ROOT })
  console.table(results)
  if (code !== 0 || results.some(({ result }) => result !== 'done')) process.exitCode = 1
}

function chooseSteps ({ only: chosen, readme, from }) {
  const only = readme ? [...chosen ?? [], ...README] : chosen
  const names = STEPS.map(([name]) => name)
  for (const name of [...only ?? [], ...from === undefined ? [] : [from]]) {
    if (!names.includes(name)) throw new Error(`no step is called "${name}"; there are ${names.join(', ')}`)
  }
  return STEPS.slice(from === undefined ? 0 : names.indexOf(from)).filter(([name]) => only === undefined || only.includes(name))
}

async function runStep (name, minutes, args, until) {
  const left = until - Date.now()
  if (left < minutes * 60_000) return { name, result: 'not started', minutes: 0 }
  console.log(`${new Date().toISOString()} ${name}: ${commandOf(args)}`)
  const started = Date.now()
  const { code } = await run(process.execPath, [path.join('bench', args[0]), ...args.slice(1)], { cwd: ROOT, live: true, ...Number.isFinite(left) && { deadlineMs: left } })
  return { name, result: code === 0 ? 'done' : `failed with ${code}`, minutes: Math.round((Date.now() - started) / 6000) / 10 }
}

function commandOf ([script, ...args]) {
  return ['node', `bench/${script}`, ...args].join(' ')
}
