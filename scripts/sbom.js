'use strict'

// node scripts/sbom.js
//
// Prints the software bill of materials of what `npm install light-trace` brings, as CycloneDX: the package is packed and installed
// in an empty folder, so that none of our own tools is in it.

const { execFileSync } = require('node:child_process')
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')

const folder = mkdtempSync(path.join(tmpdir(), 'light-trace-sbom-'))
const npm = (cwd, ...args) => execFileSync('npm', args, { cwd, encoding: 'utf8', shell: process.platform === 'win32' })
try {
  const tarball = npm(path.join(__dirname, '..'), 'pack', '--silent', '--pack-destination', folder).trim()
  writeFileSync(path.join(folder, 'package.json'), '{ "name": "installed", "version": "0.0.0", "private": true }')
  npm(folder, 'install', '--silent', '--no-audit', '--no-fund', `./${tarball}`)
  process.stdout.write(npm(folder, 'sbom', '--sbom-format', 'cyclonedx'))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
