'use strict'

// npm run test:ecosystem [-- group… [--update] [--all]]
//
// Tries the package as its users have it: packed, and installed into apps of their own beside what people use with Fastify.
// Each folder of test/ecosystem/ is such an app: a package.json with exact versions, and tests for Node's own runner. It is
// copied to .ecosystem/, where its node_modules stay for the next run. Prints `N passed, N failed`.
// --all: what takes long too: Fastify's own tests on each Node (CI: the oldest and one with AsyncContextFrame), reply-from's own.
// --update: tests that compare a page of docs/ write it instead.

const fs = require('node:fs')
const path = require('node:path')
const { run } = require('./run')
const { installNode, nodeBinary } = require('./matrix-cell')

const ROOT = path.join(__dirname, '..')
const GROUPS = path.join(ROOT, 'test', 'ecosystem')
const WORK = path.join(ROOT, '.ecosystem')
const ALL = process.argv.includes('--all')
const DEADLINE_MS = 25 * 60_000 // of one group: Fastify's own tests on four Nodes take a quarter of that on two idle cores

module.exports = { environment, pack }

if (require.main === module) main().then((code) => { process.exitCode = code })

async function main () {
  const only = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
  const groups = fs.readdirSync(GROUPS).filter((name) => fs.existsSync(path.join(GROUPS, name, 'package.json')) && (only.length === 0 || only.includes(name)))
  const tarball = await pack(WORK)
  const total = { passed: 0, failed: 0 }
  for (const group of groups) {
    const { passed, failed, line } = await runGroup(group, tarball).catch((error) => ({ passed: 0, failed: 1, line: error.message }))
    total.passed += passed
    total.failed += failed
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} ${group.padEnd(12)} ${line}`)
  }
  console.log(`${total.passed} passed, ${total.failed} failed`)
  return total.failed === 0 && total.passed > 0 ? 0 : 1
}

/** @returns {Promise<string>} the tarball's path: what would be published */
async function pack (to) {
  fs.mkdirSync(to, { recursive: true })
  const { code, output } = await run('npm', ['pack', '--silent', '--pack-destination', to], { cwd: ROOT, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm pack ended with ${code}\n${output}`)
  return path.join(to, output.trim().split('\n').at(-1))
}

async function runGroup (group, tarball) {
  const directory = path.join(WORK, group)
  // testsOf: the same tests with other versions. nodes: majors whose binaries the tests find in NODES.
  const { testsOf, nodes: nodesOfCi = [], allNodes = nodesOfCi } = require(path.join(GROUPS, group, 'package.json'))
  const nodes = ALL ? allNodes : nodesOfCi
  copyFiles([...(testsOf === undefined ? [] : [testsOf]), group].map((name) => path.join(GROUPS, name)), directory)
  await install(directory, tarball)
  const env = { ...environment(), NODES: JSON.stringify(await binaries(nodes)) }
  const started = Date.now()
  const files = fs.readdirSync(directory, { recursive: true }).filter((file) => /\.test\.[cm]?js$/.test(file) && !file.includes('node_modules'))
  const { code, output } = await run(process.execPath, ['--test', '--test-reporter=tap', '--test-concurrency=1', ...files], { cwd: directory, env, deadlineMs: DEADLINE_MS })
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  const passed = count('pass')
  const failed = count('fail') + count('cancelled')
  if (code !== 0 || passed === 0) console.log(output)
  const isBad = failed === 0 && (code !== 0 || passed === 0)
  return { passed, failed: isBad ? 1 : failed, line: `${passed} passed, ${failed} failed, ${Math.round((Date.now() - started) / 1000)} s` }
}

/** The group's own files anew, its node_modules as they are. */
function copyFiles (folders, to) {
  fs.mkdirSync(to, { recursive: true })
  for (const name of fs.readdirSync(to)) if (name !== 'node_modules') fs.rmSync(path.join(to, name), { recursive: true })
  for (const from of folders) fs.cpSync(from, to, { recursive: true, filter: (file) => path.basename(file) !== 'node_modules' })
}

// npm installs only what differs: of a tarball with the same name that is what lies in its own folder, so that is taken out first.
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

// Neither npm's own variables nor tap's: they name this package and this runner.
function environment () {
  const env = { ...process.env, UPDATE: process.argv.includes('--update') ? '1' : '', ALL: ALL ? '1' : '' }
  for (const key of Object.keys(env)) if (/^(npm_|TAP_|_TAPJS|NODE_TEST_|NODE_OPTIONS$)/.test(key)) delete env[key]
  return env
}
