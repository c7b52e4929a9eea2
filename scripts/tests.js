'use strict'

// npm run test:unit [files or folders]
// node scripts/tests.js [--long] [--beside script]… [--jobs N] [files or folders]
//
// Loading tap and Fastify takes Node longer than most files take to test, so the files of a folder share a process
// (test/support/together.js). A file that changes its process permanently says `// Alone in its process: why`. Prints one line per file;
// for a file that fails, also its output, without the tests that passed. Ends with `N passed, N failed`, which counts tests, not
// assertions.
//
// --beside: an npm script to run among the files; counts as one test.
// --long: each file may take ten minutes instead of four. LIGHT_TRACE_LONG=1 makes the tests themselves long.
//
// Plain Node runs a file that is written for tap. tap's own runner loads two module loaders into every process, each in its own thread.
// That takes 0.7 s of CPU per file, as much as most files themselves.

const { readFileSync, statSync } = require('node:fs')
const { availableParallelism } = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { filesBelow } = require('./files')
const { run } = require('./run')

const ROOT = path.join(__dirname, '..')
// Folders whose tests need servers, a browser, other packages, or an otherwise idle machine. Other scripts run them.
const NEEDS_MORE = ['browser', 'collector', 'examples', 'fleet', 'metrics-servers', 'senders', 'services', 'site', 'slow']
// Slow tests: outages and freezes, thousands of inputs, a process for each case.
const LEFT_TO_THE_MATRIX = [
  'context/chains', 'examples', 'metrics/bad-times', 'metrics/export', 'metrics/kept-bytes', 'otlp/long-span', 'otlp/same-span', 'outbound/trace-events', 'span/extrapolation', 'span/fair-rate',
  'viewer/bad-input', 'viewer/bounds', 'viewer/check', 'viewer/events', 'viewer/logs', 'viewer/pg', 'viewer/run-process', 'viewer/run-program', 'serverless/cloud-run', 'serverless/lambda', 'serverless/vercel', 'span/ring-bounds',
  'faults/answers', 'faults/clock', 'faults/connections', 'faults/crash', 'faults/fuzz', 'faults/inherited-names', 'faults/leaks', 'faults/linear-work', 'faults/logs', 'faults/memory', 'faults/pipelined-memory',
  'faults/outages', 'faults/process', 'faults/proxy', 'faults/surroundings', 'faults/thinning', 'faults/thinned-ids'
].map((name) => path.join('test', `${name}.test.js`))
// Takes minutes at full length, mostly waiting. If it started last, it would run alone at the end.
const BEGINS_FIRST = path.join('test', 'faults', 'outages.test.js')
const HOUSE = path.join('test', 'house', path.sep)
// Tests of the repository itself. A change that breaks them harms no reader before it is merged.
const LEFT_TO_CI = ['bench', 'configs', 'fault-matrix', 'package', 'suites', 'workflows'].map((name) => `${HOUSE}${name}.test.js`)
const TIMEOUT_S = 240 // per file: on a busy machine some need more than a minute
const LONG_TIMEOUT_S = 600
const DEADLINE_MS = 5 * 60_000 // tap fails a test at its timeout; this ends a process that continues anyway
const LONG_DEADLINE_MS = 15 * 60_000
const FILES_PER_DEADLINE = 5 // for files that share a process
const TOGETHER = path.join('test', 'support', 'together.js')
const ALONE = /^\/\/ Alone in its process: /m
const PASSED = /^ *ok \d.*\n/gm
const TEST = /^(not )?ok \d+(.*)$/gm
const ENDED = /^(not |)ok \d+ - .*# time=([\d.]+)ms/m // the result line of a file in a shared process
const IS_COMPLETE = /^1\.\.\d+/m
const COMMENT = /^ +# (?!Subtest|time[=o]|\{).*/gm // written by t.comment()

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
 * Test files that need nothing but Node, as paths from the root.
 * @param {{ all?: boolean }} [options] all: includes slow tests, but not test/house, which gives the same result on each Node
 */
function testFiles ({ all = false } = {}) {
  const isLeft = all ? (file) => file.startsWith(HOUSE) : (file) => LEFT_TO_THE_MATRIX.includes(file) || LEFT_TO_CI.includes(file)
  return testsIn('test').filter((file) => !NEEDS_MORE.includes(file.split(path.sep)[1]) && !isLeft(file))
}

/**
 * Groups files that can share a process, by folder. The longest come first, so that they do not run alone at the end.
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
    groups.set(folder, [...groups.get(folder) ?? [], file.replaceAll(path.sep, '/')]) // the form in which tap prints names
  }
  const isFirst = (file) => file === BEGINS_FIRST
  return [...alone.filter(isFirst), ...[...groups.values()].sort((a, b) => b.length - a.length), ...alone.filter((file) => !isFirst(file))]
}

/**
 * @param {Array<string | string[]>} files the files of an inner list share a process
 * @param {{ scripts?: string[], node?: string, env?: object, jobs?: number, timeoutS?: number, deadlineMs?: number }} [options]
 *   scripts: npm scripts, run first; env: added to this process's; timeoutS: tap's timeout per file; deadlineMs: when to end a process
 * @returns {Promise<{ passed: number, failed: number }>} the totals; a file that counts no tests or does not end is a failure
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
      // A failure between two files or after the last one belongs to no file.
      if (code !== 0 && parts.every(({ failed }) => failed === 0)) parts.push({ ...whole, passed: 0, failed: 1 })
      for (const part of parts) report({ ...part, code })
    })
  ]
  const work = async () => { for (let next; (next = waiting.shift()) !== undefined;) await next() }
  await Promise.all(Array.from({ length: jobs }, work))
  return sum
}

/** The output of each file in a shared process. If the process broke off, the rest of the output belongs to the last file that began. */
function partsOf (names, output) {
  const texts = new Map(output.split(/^# Subtest: /m).map((text) => [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)]))
  return names.map((name) => {
    const text = texts.get(name) ?? 'it did not start\n'
    const { index = text.length, 1: not = 'not ', 2: ms = 0 } = ENDED.exec(text) ?? {}
    const own = text.slice(0, index).replaceAll(/^ {4}/gm, '')
    return { name, ...testsOf(own, not === ''), output: own, seconds: ms / 1000 }
  })
}

/** Counts the tests of a file. A file that did not end well or has no tests counts as a failure. */
function testsOf (output, endedWell) {
  const all = [...output.matchAll(TEST)]
  const results = all.filter(([, , comment]) => !/# (?:SKIP|TODO)/i.test(comment)).map(([, not]) => not === undefined)
  const failed = results.filter((isOk) => !isOk).length
  return { passed: results.length - failed, failed: failed === 0 && (!endedWell || all.length === 0) ? 1 : failed }
}

/** CPU time of all ended child processes, if the system reports it. */
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
