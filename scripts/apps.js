'use strict'

// npm run test:suite -- ecosystem [group…] [--update] [--all]
// npm run test:suite -- interop [fixture…]
//
// Tests the package inside separate apps, whose tests use Node's own test runner.
//
// ecosystem: installs the packed package, as users do, next to what people use with Fastify. Each folder of test/ecosystem/ is one app: a
// package.json with exact versions, and tests. It is copied to .ecosystem/, where its node_modules stay for the next run.
// --all: includes what takes long: Fastify's own tests on each Node (CI: the oldest and one with AsyncContextFrame), and reply-from's.
// --update: tests that compare a page of docs/ write it instead.
//
// interop: runs test/otel/app/run.js with the packages of each fixture, test/fixtures/api-*. A fixture is a combination of API and SDK
// that users have. This package is installed next to them, as npm would do.

const fs = require('node:fs')
const path = require('node:path')
const { filesBelow } = require('./files')
const { installNode, nodeBinary } = require('./matrix-cell')
const { run } = require('./run')
const { installClients } = require('./services/install')

const ROOT = path.join(__dirname, '..')
const GROUPS = path.join(ROOT, 'test', 'ecosystem')
const WORK = path.join(ROOT, '.ecosystem')
const OTEL = path.join(ROOT, 'test', 'otel')
const FIXTURES = {
  'api-1.9': 20,
  'api-1.10': 24 // SDK 3.x needs Node 22.15
}
const ALL = process.argv.includes('--all')
const DEADLINE_MS = 25 * 60_000 // per app: Fastify's own tests on four Nodes take a quarter of that on two idle cores
const ANOTHER_RUNNERS = /^(?:npm_|TAP_|_TAPJS|NODE_TEST_|NODE_OPTIONS$)/ // variables of npm and tap, which name this package and this runner

module.exports = { environment, pack, runEcosystem, runInterop }

async function runEcosystem (only) {
  const groups = fs.readdirSync(GROUPS).filter((name) => fs.existsSync(path.join(GROUPS, name, 'package.json')) && (only.length === 0 || only.includes(name)))
  const tarball = await pack(WORK)
  return eachOf(groups, (group) => runGroup(group, tarball))
}

function runInterop (only) {
  return eachOf(Object.keys(FIXTURES).filter((name) => only.length === 0 || only.includes(name)), runFixture)
}

/** Runs one app after the other and prints a line for each. */
async function eachOf (names, runApp) {
  const total = { passed: 0, failed: 0 }
  for (const name of names) {
    const started = Date.now()
    const { passed, failed, how = '' } = await runApp(name).catch((error) => ({ passed: 0, failed: 1, how: ` ${error.message}` }))
    total.passed += passed
    total.failed += failed
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} ${name.padEnd(12)} ${passed} passed, ${failed} failed, ${Math.round((Date.now() - started) / 1000)} s${how}`)
  }
  return total
}

/** @returns {Promise<string>} the path of the tarball that would be published */
async function pack (to) {
  fs.mkdirSync(to, { recursive: true })
  const { code, output } = await run('npm', ['pack', '--silent', '--pack-destination', to], { cwd: ROOT, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm pack ended with ${code}\n${output}`)
  return path.join(to, output.trim().split('\n').at(-1))
}

/** The environment for other packages, without the variables that npm and tap set for this one. */
function environment () {
  const env = { ...process.env, UPDATE: process.argv.includes('--update') ? '1' : '', ALL: ALL ? '1' : '' }
  for (const key of Object.keys(env)) if (ANOTHER_RUNNERS.test(key)) delete env[key]
  return env
}

async function runGroup (group, tarball) {
  const directory = path.join(WORK, group)
  // testsOf: uses that group's tests with other versions. nodes: majors whose binaries the tests find in NODES.
  const { testsOf, nodes: nodesOfCi = [], allNodes = nodesOfCi } = require(path.join(GROUPS, group, 'package.json'))
  const nodes = ALL ? allNodes : nodesOfCi
  copyFiles([...(testsOf === undefined ? [] : [testsOf]), group].map((name) => path.join(GROUPS, name)), directory)
  await install(directory, tarball)
  const env = { ...environment(), NODES: JSON.stringify(await binaries(nodes)) }
  const files = filesBelow(directory).filter((file) => /\.test\.[cm]?js$/.test(file))
  return runTests(process.execPath, ['--test-concurrency=1', ...files], directory, env)
}

async function runFixture (name) {
  const directory = path.join(ROOT, 'test', 'fixtures', name)
  await installClients(directory)
  putLightTrace(path.join(directory, 'node_modules', 'light-trace'))
  const app = putApp(directory)
  await installNode(FIXTURES[name])
  const env = { ...environment(), FIXTURE: app, INTEROP_TESTS: OTEL }
  for (const key of Object.keys(env)) if (/^(?:NODE_|OTEL_)/.test(key)) delete env[key]
  return { ...await runTests(nodeBinary(FIXTURES[name]), [path.join(app, 'run.js')], directory, env), how: ` on Node ${FIXTURES[name]}` }
}

async function runTests (node, files, cwd, env) {
  const { code, output } = await run(node, ['--test', '--test-reporter=tap', ...files], { cwd, env, deadlineMs: DEADLINE_MS })
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  const passed = count('pass')
  const failed = Math.max(count('fail') + count('cancelled'), code === 0 && passed > 0 ? 0 : 1)
  if (failed > 0) console.log(output)
  return { passed, failed }
}

/** Copies the group's own files again and keeps its node_modules. */
function copyFiles (folders, to) {
  fs.mkdirSync(to, { recursive: true })
  for (const name of fs.readdirSync(to)) if (name !== 'node_modules') fs.rmSync(path.join(to, name), { recursive: true })
  for (const from of folders) fs.cpSync(from, to, { recursive: true, filter: (file) => path.basename(file) !== 'node_modules' })
}

// npm only installs what differs. It considers a tarball with the same name already installed, so the installed copy is removed first.
async function install (directory, tarball) {
  fs.rmSync(path.join(directory, 'node_modules', 'light-trace'), { recursive: true, force: true })
  const { code, output } = await run('npm', ['install', '--no-package-lock', '--no-save', '--no-audit', '--no-fund', '--prefer-offline', '--ignore-scripts', tarball], { cwd: directory, env: environment(), deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm install ended with ${code}\n${output}`)
}

async function binaries (majors) {
  const entries = []
  for (const major of majors) {
    await installNode(major)
    entries.push([major, nodeBinary(major)])
  }
  return Object.fromEntries(entries)
}

// All fixtures use the same application. It is copied into their node_modules, so that it requires their packages.
function putApp (directory) {
  const app = path.join(directory, 'node_modules', 'the-app')
  fs.rmSync(app, { recursive: true, force: true })
  fs.cpSync(path.join(OTEL, 'app'), app, { recursive: true })
  return app
}

// Copies instead of linking: through a link, it would find the packages of this repository.
function putLightTrace (target) {
  const { files } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json')))
  fs.rmSync(target, { recursive: true, force: true })
  for (const file of ['package.json', ...files]) {
    if (fs.existsSync(path.join(ROOT, file))) fs.cpSync(path.join(ROOT, file), path.join(target, file), { recursive: true })
  }
}
