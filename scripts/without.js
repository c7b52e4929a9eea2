'use strict'

// node scripts/without.js                                         lists the features
// node scripts/without.js --all | NAME… [files or folders of tests]   NAME is a feature, or viewer
//
// Proves that the core does not need a feature, nor the library the viewer. In a copy of the repository, it removes the feature's folder, its row of lib/features.js,
// its tests, and the features that use it, and runs the remaining tests.
//
// A feature's tests are the files that begin with `// Feature: NAME`, those that require a removed file or one of these files, and single
// tests with `{ skip: without('NAME') }` (test/support/features.js).

const { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } = require('node:fs')
const { execFileSync } = require('node:child_process')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { requiredBy } = require('./required-files')
const { run } = require('./run')
const { testFiles, testsIn, HOUSE } = require('./tests')

const ROOT = path.join(__dirname, '..')
const TABLE = path.join('lib', 'features.js')
const DEADLINE_MS = 10 * 60_000
const VIEWER = 'viewer' // a folder beside lib, which has no row in the table of features
const TESTS_OF_VIEWER = path.join('test', 'viewer', path.sep)
const FEATURE = /^\/\/ Feature: (.+)$/m

module.exports = { runFeatures }

if (require.main === module) main().then((code) => { process.exitCode = code })

async function main () {
  const { values, positionals } = parseArgs({ options: { all: { type: 'boolean' } }, allowPositionals: true })
  const { FEATURES } = require('../lib/features')
  const known = [...Object.keys(FEATURES), VIEWER]
  const names = values.all ? known : positionals.filter((name) => known.includes(name))
  if (names.length === 0) {
    console.log(known.join('\n'))
    return 1
  }
  const { passed, failed } = await runFeatures(names, values.all ? [] : positionals.filter((name) => !known.includes(name)))
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}

/** @param {string[]} names empty: all features */
async function runFeatures (names, files = []) {
  const { FEATURES } = require('../lib/features')
  const total = { passed: 0, failed: 0 }
  for (const name of names.length > 0 ? names : [...Object.keys(FEATURES), VIEWER]) {
    const { passed, failed, output } = await runWithout(withUsers(name, FEATURES), files)
    total.passed += passed
    total.failed += failed
    if (failed > 0) console.log(output)
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} without ${name}: ${passed} passed, ${failed} failed`)
  }
  return total
}

/** A feature, and all features that use it directly or indirectly. */
function withUsers (name, features, found = new Set([name])) {
  for (const [user, { uses = [] }] of Object.entries(features)) {
    if (!uses.includes(name) || found.has(user)) continue
    found.add(user)
    withUsers(user, features, found)
  }
  return [...found]
}

async function runWithout (names, given) {
  const directory = mkdtempSync(path.join(tmpdir(), 'lt-')) // short, because a long path truncates the warnings that tests check
  try {
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
    const isGone = (file) => names.some((name) => file === `lib/features/${name}.js` || file.startsWith(`lib/features/${name}/`) || (name === VIEWER && file.startsWith('viewer/')))
    for (const file of files) if (!isGone(file)) cpSync(path.join(ROOT, file), path.join(directory, file))
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(directory, 'node_modules'), 'junction')
    writeFileSync(path.join(directory, TABLE), withoutRows(readFileSync(path.join(ROOT, TABLE), 'utf8'), names))
    const tests = (given.length > 0 ? given.flatMap(testsIn) : testFiles().filter((file) => !file.startsWith(HOUSE) && !file.startsWith(TESTS_OF_VIEWER)))
    const left = tests.filter((file) => !isOf(file, names, isGone))
    for (const file of tests) if (!left.includes(file)) rmSync(path.join(directory, file))
    const { output } = await run(process.execPath, ['scripts/tests.js', ...left], { cwd: directory, env: process.env, deadlineMs: DEADLINE_MS })
    const [, passed, failed] = /(\d+) passed, (\d+) failed\s*$/.exec(output) ?? ['', 0, 1]
    return { passed: Number(passed), failed: Number(failed), output }
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 }) // a process that had to be stopped may still write
  }
}

/** Removes rows from the table. Each row begins and ends with a line that is indented by two spaces. */
function withoutRows (table, names) {
  return names.filter((name) => name !== VIEWER).reduce((text, name) => {
    const row = new RegExp(`^  '?${name}'?: \\{[^]*?^  \\},?\\n`, 'm')
    if (!row.test(text)) throw new Error(`${TABLE} has no row ${name} of that form`)
    return text.replace(row, '')
  }, table)
}

/** Whether a test belongs to one of the features: the file, or a test file that it requires, names the feature or requires a removed file. */
function isOf (file, names, isGone, seen = new Set()) {
  seen.add(file)
  const [, said = ''] = FEATURE.exec(readFileSync(path.join(ROOT, file), 'utf8')) ?? []
  return said.split(', ').some((name) => names.includes(name)) || requiredBy(file).some(({ target }) => { // undefined: a require in a program that a test writes
    return target !== undefined && (isGone(target) || (target.startsWith('test/') && !seen.has(target) && isOf(target, names, isGone, seen)))
  })
}
