'use strict'

// One cell of the matrix: a copy of the repository whose node_modules are hard links, with one package replaced (by a
// given version, or by the newest of a range), and the suite run in it under a Node of its own.

module.exports = { runCell, install, installNode, nodeBinary }

const fs = require('node:fs')
const path = require('node:path')
const { availableParallelism } = require('node:os')
const { run } = require('./run')
const { countsOf } = require('./counts')
const { LEFT_TO_THE_MATRIX } = require('./tests')

const ROOT = path.join(__dirname, '..')
const MATRIX = path.join(ROOT, '.matrix')
const NOT_OURS = new Set(['.git', '.matrix', '.ecosystem', '.cache', '.tap', '.venv'])
const NOT_NEEDED = /^(?:bench|site)\b.*\bnode_modules$/ // many, large, and no test needs them
const DEADLINE_MS = 25 * 60_000 // with other suites beside it

/** @returns {Promise<{ passed: number, failed: number, line: string }>} never rejects: what goes wrong is a failure */
async function runCell ({ newest = {}, ...cell }, testFiles) {
  const log = path.join(MATRIX, `${cell.name}.log`)
  try {
    for (const [dependency, range] of Object.entries(newest)) cell.replaced = { ...cell.replaced, [dependency]: await newestOf(dependency, range) }
    if (Object.keys(newest).length > 0 && Object.entries(cell.replaced).every(([dependency, version]) => version === installedVersion(dependency))) {
      return { passed: 0, failed: 0, line: `not run: the newest is what the cells of the Nodes have, ${JSON.stringify(cell.replaced)}` }
    }
    const directory = await prepare(cell)
    const started = Date.now()
    const { code, output } = await suite(cell, directory, testFiles, log)
    const counts = countsOf(output, code)
    const ranOn = /^ *# running on (.*)$/m.exec(output)?.[1]
    if (ranOn === undefined) counts.failed++ // test/runtime.test.js did not run: nothing proves where the rest did
    const line = `${counts.passed} passed, ${counts.failed} failed, ${Math.round((Date.now() - started) / 1000)} s on ${ranOn ?? 'nobody knows what'}`
    if (counts.failed > 0) console.log(output)
    else fs.rmSync(directory, { recursive: true })
    return { ...counts, line }
  } catch (error) {
    return { passed: 0, failed: 1, line: `could not be run: ${error.message}` }
  }
}

async function prepare ({ name, node, replaced = {} }) {
  await installNode(node)
  const directory = path.join(MATRIX, 'cells', name)
  fs.rmSync(directory, { recursive: true, force: true })
  copyRepository(ROOT, directory)
  for (const [dependency, version] of Object.entries(replaced)) {
    const installed = await install(`${dependency.replace('/', '+')}@${version}`, dependency, version)
    replace(path.join(directory, 'node_modules', dependency), dependency, installed)
  }
  return directory
}

function suite ({ node, flag, replaced, isLong, isAsked }, directory, testFiles, log) {
  const binaries = path.join(MATRIX, 'packages', `node${node}`, 'node_modules', 'node', 'bin')
  const runtime = path.join('test', 'runtime.test.js')
  // .ci/run has this Node's version from before, when `npm test` ran on it: that is not run a second time.
  const isTested = replaced === undefined && !isAsked && process.env.TESTED_ON === `v${versionIn(path.join(binaries, '..', 'package.json'))}`
  const files = [runtime, ...testFiles.filter((file) => file !== runtime && (!isTested || LEFT_TO_THE_MATRIX.includes(file)))]
  const jobs = ['--jobs', String(availableParallelism())] // CI runs other suites beside it
  const length = isLong ? ['--long'] : []
  const env = { ...process.env, ...(isLong && { LIGHT_TRACE_LONG: '1' }), ...(flag && { NODE_OPTIONS: flag }), PATH: binaries + path.delimiter + process.env.PATH, MATRIX_EXPECTS: JSON.stringify({ node: `v${node}.`, flag, ...replaced }) }
  for (const key of Object.keys(env)) if (/^(npm_|NODE$|TAP_|_TAPJS)/.test(key)) delete env[key] // they name the Node that runs this
  return run(path.join(binaries, 'node'), [path.join('scripts', 'tests.js'), ...jobs, ...length, ...files], { cwd: directory, env, log, deadlineMs: DEADLINE_MS })
}

function installedVersion (dependency) {
  return versionIn(path.join(ROOT, 'node_modules', dependency, 'package.json'))
}

function versionIn (manifest) {
  return JSON.parse(fs.readFileSync(manifest, 'utf8')).version
}

async function newestOf (dependency, range) {
  const { code, output } = await run('npm', ['view', `${dependency}@${range}`, 'version', '--json', '--loglevel=error'], { cwd: ROOT, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm view ${dependency}@${range} ended with ${code}\n${output}`)
  return [JSON.parse(output)].flat().at(-1) // npm lists them in the order of versions
}

// Each package in a directory of its own, kept between runs: what one needs never moves what another one has. It gets its
// name when it is whole, since suites that run side by side install the same.
async function install (folder, dependency, version) {
  const directory = path.join(MATRIX, 'packages', folder)
  const installed = path.join(directory, 'node_modules')
  if (fs.existsSync(directory)) return installed
  const unfinished = `${directory}.${process.pid}`
  fs.mkdirSync(unfinished, { recursive: true })
  fs.writeFileSync(path.join(unfinished, 'package.json'), JSON.stringify({ private: true, dependencies: { [dependency]: version } }))
  const { code, output } = await run('npm', ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund'], { cwd: unfinished, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm install of ${dependency}@${version} ended with ${code}\n${output}`)
  try {
    fs.renameSync(unfinished, directory)
  } catch (error) {
    if (!fs.existsSync(directory)) throw error
    fs.rmSync(unfinished, { recursive: true }) // another one was faster
  }
  return installed
}

// The replaced package brings its own dependencies along, nested, so that nothing else in the tree changes.
function replace (target, dependency, installed) {
  fs.rmSync(target, { recursive: true })
  linkTree(path.join(installed, dependency), target)
  for (const name of packagesIn(installed)) {
    const nested = path.join(target, 'node_modules', name)
    if (name !== dependency && !fs.existsSync(nested)) linkTree(path.join(installed, name), nested)
  }
}

/** A major version of Node, from npm. */
function installNode (node) {
  return install(`node${node}`, 'node', `npm:node-${platform()}-${process.arch}@${node}`)
}

/** Of a major version that was installed by `installNode`. */
function nodeBinary (node) {
  return path.join(MATRIX, 'packages', `node${node}`, 'node_modules', 'node', 'bin', 'node')
}

function packagesIn (directory) {
  return fs.readdirSync(directory).filter((name) => !name.startsWith('.')).flatMap((name) =>
    name.startsWith('@') ? fs.readdirSync(path.join(directory, name)).map((scoped) => `${name}/${scoped}`) : name)
}

function copyRepository (from, to) {
  fs.mkdirSync(to, { recursive: true })
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)]
    if (NOT_OURS.has(entry.name) || NOT_NEEDED.test(path.relative(ROOT, source))) continue
    if (entry.name === 'node_modules') linkTree(source, target)
    else if (entry.isDirectory()) copyRepository(source, target)
    else fs.copyFileSync(source, target)
  }
}

function linkTree (from, to) {
  fs.mkdirSync(to, { recursive: true })
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)]
    if (entry.isSymbolicLink()) fs.symlinkSync(fs.readlinkSync(source), target)
    else if (entry.isDirectory()) linkTree(source, target)
    else fs.linkSync(source, target)
  }
}

function platform () {
  return process.platform === 'win32' ? 'win' : process.platform
}
