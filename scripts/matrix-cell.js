'use strict'

// One cell of the matrix: a copy of the repository whose node_modules are hard links, with some packages replaced by a given version or
// by the newest of a range. The suite runs in it on its own Node.

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
const NOT_NEEDED = /^(?:bench|site)\b.*\bnode_modules$/ // many large files that no test needs
const DEADLINE_MS = 25 * 60_000 // long enough to run next to other suites

/** @returns {Promise<{ passed: number, failed: number, line: string }>} never rejects: errors count as failures */
async function runCell ({ newest = {}, ...cell }, testFiles) {
  const log = path.join(MATRIX, `${cell.name}.log`)
  try {
    for (const [dependency, range] of Object.entries(newest)) cell.replaced = { ...cell.replaced, [dependency]: await newestOf(dependency, range) }
    if (Object.keys(newest).length > 0 && Object.entries(cell.replaced).every(([dependency, version]) => version === installedVersion(dependency))) {
      return { passed: 0, failed: 0, line: `not run: the newest version is already in the cells of the Node versions, ${JSON.stringify(cell.replaced)}` }
    }
    const directory = await prepare(cell)
    const started = Date.now()
    const { code, output } = await suite(cell, directory, testFiles, log)
    const counts = countsOf(output, code)
    const ranOn = /^ *# running on (.*)$/m.exec(output)?.[1]
    if (ranOn === undefined) counts.failed++ // test/runtime.test.js did not run, so nothing proves where the rest ran
    const line = `${counts.passed} passed, ${counts.failed} failed, ${Math.round((Date.now() - started) / 1000)} s on ${ranOn ?? 'an unknown runtime'}`
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
  // If `npm test` already ran on this Node version (.ci/run sets TESTED_ON), those tests are not repeated.
  const isTested = replaced === undefined && !isAsked && process.env.TESTED_ON === `v${versionIn(path.join(binaries, '..', 'package.json'))}`
  const files = [runtime, ...testFiles.filter((file) => file !== runtime && (!isTested || LEFT_TO_THE_MATRIX.includes(file)))]
  const jobs = ['--jobs', String(availableParallelism())] // in CI other suites run next to it
  const length = isLong ? ['--long'] : []
  const env = { ...process.env, ...(isLong && { LIGHT_TRACE_LONG: '1' }), ...(flag && { NODE_OPTIONS: flag }), PATH: binaries + path.delimiter + process.env.PATH, MATRIX_EXPECTS: JSON.stringify({ node: `v${node}.`, flag, ...replaced }) }
  for (const key of Object.keys(env)) if (/^(npm_|NODE$|TAP_|_TAPJS)/.test(key)) delete env[key] // they name the Node that runs this script
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
  return [JSON.parse(output)].flat().at(-1) // npm lists them in order of version
}

// Each package has its own directory, which is kept between runs, so that the dependencies of one never affect another. The directory
// gets its final name once it is complete, since concurrent suites install the same packages.
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
    fs.rmSync(unfinished, { recursive: true }) // another suite was faster
  }
  return installed
}

// The replaced package brings its own dependencies, nested, so that nothing else in the tree changes.
function replace (target, dependency, installed) {
  fs.rmSync(target, { recursive: true })
  linkTree(path.join(installed, dependency), target)
  for (const name of packagesIn(installed)) {
    const nested = path.join(target, 'node_modules', name)
    if (name !== dependency && !fs.existsSync(nested)) linkTree(path.join(installed, name), nested)
  }
}

/** Installs a major version of Node, from npm. */
function installNode (node) {
  return install(`node${node}`, 'node', `npm:node-${platform()}-${process.arch}@${node}`)
}

/** The binary of a major version that `installNode` installed. */
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
