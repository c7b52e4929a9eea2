'use strict'

// node bench/install.js, and automatically before any run that needs it: installs the rivals. Each folder has its own node_modules,
// so that two majors of one package do not conflict.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const FOLDERS = { rivals: __dirname, sdk3: path.join(__dirname, 'sdk3') }

module.exports = installMissing

if (require.main === module) installMissing(Object.keys(FOLDERS))

// names: keys of FOLDERS. Installs a folder where the installed versions differ from its package.json.
function installMissing (names) {
  for (const name of names) {
    const folder = FOLDERS[name]
    if (!isInstalled(folder)) install(folder)
  }
}

function isInstalled (folder) {
  const wanted = readJson(path.join(folder, 'package.json'))
  return Object.entries(wanted.dependencies).every(([name, version]) => {
    const file = path.join(folder, 'node_modules', name, 'package.json')
    return fs.existsSync(file) && readJson(file).version === version
  })
}

function install (folder) {
  process.stderr.write(`installing ${path.relative(process.cwd(), folder)}\n`)
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel', 'error'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' })
}

function readJson (file) {
  return JSON.parse(fs.readFileSync(file, 'utf8'))
}
