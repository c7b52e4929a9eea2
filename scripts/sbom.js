'use strict'

// node scripts/sbom.js
//
// Prints the software bill of materials of what `npm install light-trace` brings, as CycloneDX: the package is packed and installed
// in an empty folder, so that none of our own tools is in it.

const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const { environment, pack } = require('./ecosystem')
const { run } = require('./run')

main()

async function main () {
  const folder = mkdtempSync(path.join(tmpdir(), 'light-trace-sbom-'))
  const npm = async (...args) => {
    const { code, output } = await run('npm', args, { cwd: folder, env: environment() })
    if (code !== 0) throw new Error(`npm ${args[0]} ended with ${code}\n${output}`)
    return output
  }
  try {
    const tarball = await pack(folder)
    writeFileSync(path.join(folder, 'package.json'), '{ "name": "installed", "version": "0.0.0", "private": true }')
    await npm('install', '--silent', '--no-audit', '--no-fund', tarball)
    process.stdout.write(await npm('sbom', '--silent', '--sbom-format', 'cyclonedx'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
