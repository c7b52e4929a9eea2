'use strict'

// npm run bench:cost: all that the page of cost has figures of, one command after the other, then the tables: more than two hours
// on two quiet cores. First comes what has a target and is a matter of time; then instructions, which are right on a busy machine
// too and are written row by row, so that this may be ended at any time; last the rest.
//
//   --list            says what it would run, and how long it takes about
//   --only settled    steps by name; may be given more than once
//   --from v8         this step and those after it
//   --minutes 55      begins none that would not be done by then, and ends what is running then
//
// A step that fails is named at the end, and the others are run all the same.

const path = require('node:path')
const { parseArgs } = require('node:util')
const { run } = require('../scripts/run')

const ROOT = path.join(__dirname, '..')
const COUNT = ['instructions', '--quick', '--windows', '1', '--parallel', '2', '--publish']
const counted = (names, ...more) => [...COUNT, ...more, ...names.split(' ').flatMap((name) => ['--case', name])]

// [name, minutes on two quiet cores, script of this folder and its arguments]
const STEPS = [
  ['settled', 15, ['settled.js', '--publish']],
  ['settled-pipelined', 6, ['settled.js', '--case', 'delivered', '--connections', '100', '--pipelining', '10', '--publish']],
  ['settled-semi-space', 6, ['settled.js', '--case', 'delivered', '--semi-space', '16', '--publish']],
  ['tail', 6, ['tail.js', '--publish']],
  ['startup', 1, ['startup.js', '--time']],
  ['v8', 5, ['v8.js', '--publish']],
  ['counted', 7, counted('floor unsampled disabled delivered down traceparent logger attributes')],
  ['calls', 7, counted('bare-redis redis bare-fetch fetch', '--counted')],
  ['real', 90, ['instructions', '--parallel', '2', '--windows', '2', '--requests', '3000', '--processes', '3', '--publish', ...[24, 26, 22, 20].flatMap((node) => ['--node', String(node)]), ...['floor-real', 'real', 'real-unsampled', 'stock-real', 'real-proxied', 'floor-real-pg', 'real-pg', 'floor-real-fetch', 'real-fetch'].flatMap((name) => ['--case', name])]],
  ['rivals', 4, counted('fastify-otel nodesdk-http', '--counted')],
  ['node22', 2, counted('floor delivered', '--node', '22')],
  ['startup-instructions', 8, ['startup.js', '--instructions']],
  ['metrics', 16, ['instructions', '--parallel', '2', '--publish', '--counted', ...['delivered-long', 'metrics', 'unsampled-long', 'metrics-unsampled', 'one-percent', 'metrics-one-percent'].flatMap((name) => ['--case', name])]],
  ['other-metrics', 2, counted('sdk-meter fastify-metrics', '--counted')],
  ['node26', 2, counted('floor delivered', '--node', '26')],
  ['node20', 2, counted('floor delivered', '--node', '20')],
  ['parts', 4, counted('hook hook-record hook-context hook-clock not-sent bare-with-socket unrouted', '--counted')],
  ['paired', 6, ['paired.js', '--publish']],
  // Until each is known to half of what is worth talking about.
  ['repeated', 15, ['instructions', '--parallel', '2', '--publish', ...['floor', 'unsampled', 'disabled', 'delivered'].flatMap((name) => ['--case', name])]],
  ['growth', 9, ['growth.js', '--publish']],
  ['warm-up', 3, ['warm-up.js', '--publish']],
  ['field', 22, ['index.js', '--field', '--publish']]
]

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { values } = parseArgs({
    options: {
      list: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true },
      from: { type: 'string' },
      minutes: { type: 'string', default: 'Infinity' }
    }
  })
  const steps = chooseSteps(values)
  if (values.list) return console.table(steps.map(([name, minutes, args]) => ({ name, minutes, command: commandOf(args) })))
  const until = Date.now() + Number(values.minutes) * 60_000
  const told = []
  for (const [name, minutes, args] of steps) told.push(await runStep(name, minutes, args, until))
  const { code } = await run(process.execPath, ['bench/report/publish.js'], { cwd: ROOT })
  console.table(told)
  if (code !== 0 || told.some(({ result }) => result !== 'done')) process.exitCode = 1
}

function chooseSteps ({ only, from }) {
  const names = STEPS.map(([name]) => name)
  for (const name of [...only ?? [], ...from === undefined ? [] : [from]]) {
    if (!names.includes(name)) throw new Error(`no step is called "${name}"; there are ${names.join(', ')}`)
  }
  return STEPS.slice(from === undefined ? 0 : names.indexOf(from)).filter(([name]) => only === undefined || only.includes(name))
}

async function runStep (name, minutes, args, until) {
  const left = until - Date.now()
  if (left < minutes * 60_000) return { name, result: 'not begun', minutes: 0 }
  console.log(`${new Date().toISOString()} ${name}: ${commandOf(args)}`)
  const started = Date.now()
  const { code } = await run(process.execPath, [path.join('bench', args[0]), ...args.slice(1)], { cwd: ROOT, live: true, ...Number.isFinite(left) && { deadlineMs: left } })
  return { name, result: code === 0 ? 'done' : `failed with ${code}`, minutes: Math.round((Date.now() - started) / 6000) / 10 }
}

function commandOf ([script, ...args]) {
  return ['node', `bench/${script}`, ...args].join(' ')
}
