'use strict'

// npm run lockfile [-- site]: makes package-lock.json from package.json, in an empty folder. Next to a node_modules folder, npm would
// leave out the optional packages of other platforms. .npmrc keeps registry addresses out of it.

const { copyFileSync, mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { execFileSync } = require('node:child_process')

const ROOT = join(__dirname, '..', process.argv[2] ?? '')
const folder = mkdtempSync(join(tmpdir(), 'light-trace-lockfile-'))
try {
  for (const file of ['package.json', '.npmrc']) copyFileSync(join(ROOT, file), join(folder, file))
  execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' })
  copyFileSync(join(folder, 'package-lock.json'), join(ROOT, 'package-lock.json'))
} finally {
  rmSync(folder, { recursive: true })
}
