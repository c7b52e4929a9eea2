'use strict'

// Disk usage: the bytes of all files of a package and of everything that npm installs with it.
// node bench/run/installed-size.js writes bench/results/sizes.json, and the viewer's sizes to viewer.json.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const root = path.join(__dirname, '../..')
const bench = path.join(__dirname, '..')

// The packages that a user has to install for each way of tracing.
const SETS = {
  'sdk2-by-hand': ['@opentelemetry/api', '@opentelemetry/sdk-trace-base', '@opentelemetry/context-async-hooks', '@opentelemetry/exporter-trace-otlp-proto'],
  'fastify-otel': ['@fastify/otel', '@opentelemetry/api', '@opentelemetry/sdk-trace-base', '@opentelemetry/context-async-hooks', '@opentelemetry/exporter-trace-otlp-proto'],
  'nodesdk-http': ['@fastify/otel', '@opentelemetry/api', '@opentelemetry/sdk-node', '@opentelemetry/instrumentation-http'],
  'nodesdk-auto': ['@fastify/otel', '@opentelemetry/api', '@opentelemetry/sdk-node', '@opentelemetry/auto-instrumentations-node']
}

module.exports = { measureOwnSizes }

if (require.main === module) {
  const { describeCommit } = require('./machine')
  const { readResults, writeResults } = require('../report/results-file')
  require('../install')(['rivals'])
  writeResults('sizes', { date: new Date().toISOString(), ...describeCommit(root), installedBytes: measureInstalledSizes() })
  writeResults('viewer', { ...readResults('viewer'), sizes: measureOwnSizes() })
}

// → { name: bytes }; 'lighttrace' is the packed package plus fastify-plugin; 'api' is counted separately
function measureInstalledSizes () {
  const sizes = {
    lighttrace: lightTraceBytes(),
    api: closureBytes(root, ['@opentelemetry/api'])
  }
  for (const [name, packages] of Object.entries(SETS)) sizes[name] = closureBytes(bench, packages)
  return sizes
}

function lightTraceBytes () {
  const { packageBytes, dependencyBytes } = measureOwnSizes()
  return packageBytes + dependencyBytes
}

// What npm installs: the files listed in package.json's "files", which include the viewer, and the only dependency.
function measureOwnSizes () {
  const { unpackedSize, files } = packed()
  return {
    packageBytes: unpackedSize,
    viewerBytes: files.filter((file) => file.path.startsWith('viewer/')).reduce((sum, { size }) => sum + size, 0),
    dependencyBytes: closureBytes(root, ['fastify-plugin']),
    pageBytes: files.find((file) => file.path === 'viewer/page.html').size
  }
}

function packed () {
  const [found] = Object.values(JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })))
  return found
}

function closureBytes (from, names) {
  const seen = new Set()
  const pending = names.map((name) => [from, name, true])
  let bytes = 0
  while (pending.length > 0) {
    const [folder, name, required] = pending.pop()
    const found = findPackage(folder, name)
    if (!found && required) throw new Error(`${name} is not installed for ${folder}`)
    if (!found || seen.has(found)) continue
    seen.add(found)
    bytes += folderBytes(found)
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = JSON.parse(fs.readFileSync(path.join(found, 'package.json'), 'utf8'))
    for (const next of Object.keys(dependencies)) pending.push([found, next, !(next in optionalDependencies)])
    for (const next of Object.keys({ ...optionalDependencies, ...peerDependencies })) pending.push([found, next, false])
  }
  return bytes
}

function findPackage (folder, name) {
  for (let at = folder; ; at = path.dirname(at)) {
    const candidate = path.join(at, 'node_modules', name)
    if (fs.existsSync(path.join(candidate, 'package.json'))) return fs.realpathSync(candidate)
    if (at === path.dirname(at)) return undefined
  }
}

function folderBytes (folder) {
  let bytes = 0
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory() && entry.name !== 'node_modules') bytes += folderBytes(file)
    else if (entry.isFile()) bytes += fs.statSync(file).size
  }
  return bytes
}
