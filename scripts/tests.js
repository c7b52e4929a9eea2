'use strict'

// npm run test:unit [files or folders]
// node scripts/tests.js [--long] [--beside script]… [--jobs N] [files or folders]
//
// Node takes longer to load tap and Fastify than most files take to test, so the files of a folder share a process
// (test/support/together.js). A file that changes its process for good says `// Alone in its process: why`. One line per file; of
// a file that fails also what it printed, without what passed. Then `N passed, N failed`: tests, not assertions.
//
// --beside: an npm script that is run among the files and counts as one test.
// --long: each file has ten minutes instead of four. LIGHT_TRACE_LONG=1 makes the tests long.
//
// Plain Node runs a file that is written for tap. tap's own runner loads two module loaders, each in a thread of its
// own, into every process: 0.7 s of CPU for each file, as much as most files take themselves.

const { readFileSync, statSync } = require('node:fs')
const { availableParallelism } = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { filesBelow } = require('./files')
const { run } = require('./run')

const ROOT = path.join(__dirname, '..')
// Folders whose tests need servers, a browser, other packages, or that nothing runs beside them: scripts of their own run them.
const NEEDS_MORE = ['browser', 'collector', 'examples', 'fleet', 'metrics-servers', 'senders', 'services', 'site', 'slow']
// Outages and freezes that take their time, thousands of inputs, a process for each case.
const LEFT_TO_THE_MATRIX = [
  'context/chains', 'examples', 'metrics/bad-times', 'metrics/export', 'metrics/kept-bytes', 'otlp/long-span', 'otlp/same-span', 'outbound/trace-events', 'span/extrapolation', 'span/fair-rate',
  'viewer/bad-input', 'viewer/bounds', 'viewer/check', 'viewer/events', 'viewer/logs', 'viewer/pg', 'viewer/run-process', 'viewer/run-program', 'serverless/cloud-run', 'serverless/lambda', 'serverless/vercel', 'span/ring-bounds',
  'faults/answers', 'faults/clock', 'faults/connections', 'faults/crash', 'faults/fuzz', 'faults/inherited-names', 'faults/leaks', 'faults/linear-work', 'faults/logs', 'faults/memory', 'faults/pipelined-memory',
  'faults/outages', 'faults/process', 'faults/proxy', 'faults/surroundings', 'faults/thinning', 'faults/thinned-ids'
].map((name) => path.join('test', `${name}.test.js`))
// Minutes at full length, of which nearly all is waiting: what begins last would be waited for alone.
const BEGINS_FIRST = path.join('test', 'faults', 'outages.test.js')
const HOUSE = path.join('test', 'house', path.sep)
// Of the repository itself, what harms no reader before it lands.
const LEFT_TO_CI = ['bench', 'configs', 'fault-matrix', 'package', 'suites', 'workflows'].map((name) => `${HOUSE}${name}.test.js`)
const TIMEOUT_S = 240 // of a whole file: where the machine is busy, some need more than a minute
const LONG_TIMEOUT_S = 600
const DEADLINE_MS = 5 * 60_000 // tap fails what runs into its timeout; this ends a process that goes on all the same
const LONG_DEADLINE_MS = 15 * 60_000
const FILES_PER_DEADLINE = 5 // where files share a process
const TOGETHER = path.join('test', 'support', 'together.js')
const ALONE = /^\/\/ Alone in its process: /m
const PASSED = /^ *ok \d.*\n/gm
const TEST = /^(not )?ok \d+(.*)$/gm
const ENDED = /^(not |)ok \d+ - .*# time=([\d.]+)ms/m // a file that shares its process
const IS_COMPLETE = /^1\.\.\d+/m
const COMMENT = /^ +# (?!Subtest|time[=o]|\{).*/gm // by t.comment()

module.exports = { testFiles, testsIn, together, runFiles, NEEDS_MORE, LEFT_TO_THE_MATRIX, LEFT_TO_CI, HOUSE }

if (require.main === module) main().then((code) => { process.exitCode = code })

async function main () {
  const { values, positionals } = parseArgs({ options: { long: { type: 'boolean' }, beside: { type: 'string', multiple: true, default: [] }, jobs: { type: 'string' } }, allowPositionals: true })
  const started = performance.now()
  const files = positionals.length > 0 ? positionals.flatMap(testsIn) : testFiles()
  const limits = values.long ? { timeoutS: LONG_TIMEOUT_S, deadlineMs: LONG_DEADLINE_MS } : {}
  const { passed, failed } = await runFiles(together(files), { scripts: values.beside, jobs: Number(values.jobs ?? availableParallelism() + 1), ...limits })
  console.log(`${files.length} files, ${Math.round(secondsSince(started))} s${cpuSeconds()}`)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

/**
 * What needs nothing but Node, as paths from the root.
 * @param {{ all?: boolean }} [options] all: what takes long by nature too, without test/house, which says the same on each Node
 */
function testFiles ({ all = false } = {}) {
  const isLeft = all ? (file) => file.startsWith(HOUSE) : (file) => LEFT_TO_THE_MATRIX.includes(file) || LEFT_TO_CI.includes(file)
  return testsIn('test').filter((file) => !NEEDS_MORE.includes(file.split(path.sep)[1]) && !isLeft(file))
}

/**
 * Groups files that can share a process, by folder. What takes longest comes first: it would be waited for at the end.
 * @param {string[]} files
 * @returns {Array<string | string[]>} for runFiles
 */
function together (files) {
  const isAlone = (file) => LEFT_TO_THE_MATRIX.includes(file) || ALONE.test(readFileSync(path.join(ROOT, file), 'utf8'))
  const alone = files.filter(isAlone)
  const groups = new Map() // Node 20 has no Map.groupBy
  for (const file of files) {
    if (alone.includes(file)) continue
    const folder = path.join(...path.dirname(file).split(path.sep).slice(0, 2))
    groups.set(folder, [...groups.get(folder) ?? [], file.replaceAll(path.sep, '/')]) // as tap prints its name
  }
  const isFirst = (file) => file === BEGINS_FIRST
  return [...alone.filter(isFirst), ...[...groups.values()].sort((a, b) => b.length - a.length), ...alone.filter((file) => !isFirst(file))]
}

/**
 * @param {Array<string | string[]>} files those of a list share a process
 * @param {{ scripts?: string[], node?: string, env?: object, jobs?: number, timeoutS?: number, deadlineMs?: number }} [options]
 *   scripts: of npm, run first; env: besides that of this process; timeoutS: tap's, for a file; deadlineMs: a process is ended then
 * @returns {Promise<{ passed: number, failed: number }>} the sum; a file that counts nothing or does not end is a failure
 */
async function runFiles (files, { scripts = [], node = process.execPath, env = {}, jobs = 1, timeoutS = TIMEOUT_S, deadlineMs = DEADLINE_MS } = {}) {
  const sum = { passed: 0, failed: 0 }
  const options = { cwd: ROOT, env: { ...process.env, ...env, TAP_TIMEOUT: String(timeoutS) } }
  const report = ({ name, passed, failed, output, seconds, code }) => {
    sum.passed += passed
    sum.failed += failed
    const notes = failed === 0 ? output.match(COMMENT) ?? [] : [output.replace(PASSED, ''), `${name} ended with ${code}`]
    console.log([`${failed === 0 ? 'ok    ' : 'FAILED'} ${name}  ${passed} passed, ${seconds.toFixed(1)} s`, ...notes].join('\n'))
  }
  const waiting = [
    ...scripts.map((name) => async () => {
      const started = performance.now()
      const { code, output } = await run(`npm run ${name}`, [], { ...options, deadlineMs, shell: true })
      report({ name: `npm run ${name}`, passed: Number(code === 0), failed: Number(code !== 0), output, seconds: secondsSince(started), code })
    }),
    ...files.map((file) => async () => {
      const names = [file].flat()
      const isShared = names.length > 1
      const started = performance.now()
      const { code, output } = await run(node, [...isShared ? [TOGETHER] : [], ...names], { ...options, deadlineMs: deadlineMs * Math.ceil(names.length / FILES_PER_DEADLINE) })
      const whole = { name: isShared ? `the process of ${names[0]} and others` : file, output, seconds: secondsSince(started) }
      const parts = isShared ? partsOf(names, output) : [{ ...whole, ...testsOf(output, code === 0 && IS_COMPLETE.test(output)) }]
      // What fails between two files or behind the last one is of no file.
      if (code !== 0 && parts.every(({ failed }) => failed === 0)) parts.push({ ...whole, passed: 0, failed: 1 })
      for (const part of parts) report({ ...part, code })
    })
  ]
  const work = async () => { for (let next; (next = waiting.shift()) !== undefined;) await next() }
  await Promise.all(Array.from({ length: jobs }, work))
  return sum
}

/** What each of the files printed that share a process. The last one that began has what was printed where that process broke off. */
function partsOf (names, output) {
  const texts = new Map(output.split(/^# Subtest: /m).map((text) => [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)]))
  return names.map((name) => {
    const text = texts.get(name) ?? 'it did not begin\n'
    const { index = text.length, 1: not = 'not ', 2: ms = 0 } = ENDED.exec(text) ?? {}
    const own = text.slice(0, index).replaceAll(/^ {4}/gm, '')
    return { name, ...testsOf(own, not === ''), output: own, seconds: ms / 1000 }
  })
}

/** The tests of a file. One that did not end well, or that tests nothing, has failed. */
function testsOf (output, endedWell) {
  const all = [...output.matchAll(TEST)]
  const results = all.filter(([, , comment]) => !/# (?:SKIP|TODO)/i.test(comment)).map(([, not]) => not === undefined)
  const failed = results.filter((isOk) => !isOk).length
  return { passed: results.length - failed, failed: failed === 0 && (!endedWell || all.length === 0) ? 1 : failed }
}

/** Of all processes that have ended below this one, where the system tells it. */
function cpuSeconds () {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ')
    return `, ${Math.round((Number(fields[13]) + Number(fields[14])) / 100)} s of CPU`
  } catch {
    return ''
  }
}

function secondsSince (started) {
  return (performance.now() - started) / 1000
}

/** A folder's tests, or the file itself. */
function testsIn (file) {
  if (!statSync(path.join(ROOT, file)).isDirectory()) return [file]
  return filesBelow(path.join(ROOT, file)).filter((name) => name.endsWith('.test.js')).map((name) => path.join(file, name))
}
