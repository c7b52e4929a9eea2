'use strict'

// Commands for the release workflow. CONTRIBUTING.md has the steps.
//
// node scripts/release.js check v1.2.3   prints what keeps this checkout from being published under that tag, one line each
// node scripts/release.js sbom           prints the software bill of materials of `npm install light-trace`, as CycloneDX

const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { environment, pack } = require('./apps')
const { run } = require('./run')

module.exports = { whatIsMissing }

if (require.main === module) {
  const [command, tag] = process.argv.slice(2)
  if (command === 'check') check(tag)
  else if (command === 'sbom') printBillOfMaterials()
  else throw new Error(`unknown command: ${command}`)
}

function check (tag) {
  const read = (file) => readFileSync(join(__dirname, '..', file), 'utf8')
  const missing = whatIsMissing({ tag, manifest: JSON.parse(read('package.json')), changelog: read('CHANGELOG.md') })
  for (const line of missing) console.error(line)
  process.exitCode = missing.length > 0 ? 1 : 0
}

/** @returns {string[]} */
function whatIsMissing ({ tag, manifest, changelog }) {
  const missing = []
  const { version } = manifest
  if (tag !== `v${version}`) missing.push(`the tag is ${tag}, and package.json says version ${version}`)
  if (typeof manifest.repository?.url !== 'string') missing.push('package.json has no repository.url: npm compares it with the repository that publishes')
  if (typeof manifest.bugs?.url !== 'string') missing.push('package.json has no bugs.url')
  if (typeof manifest.homepage !== 'string') missing.push('package.json has no homepage')
  const [, date] = new RegExp(`^## ${version.replace(/[.+]/g, '\\$&')} - (.*)$`, 'm').exec(changelog) ?? []
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date ?? '')) missing.push(`CHANGELOG.md has no heading "## ${version} - " with a date`)
  return missing
}

// Installs the package in an empty folder, so that our development tools are not included.
async function printBillOfMaterials () {
  const folder = mkdtempSync(join(tmpdir(), 'light-trace-sbom-'))
  const npm = async (...args) => {
    const { code, output } = await run('npm', args, { cwd: folder, env: environment() })
    if (code !== 0) throw new Error(`npm ${args[0]} ended with ${code}\n${output}`)
    return output
  }
  try {
    const tarball = await pack(folder)
    writeFileSync(join(folder, 'package.json'), '{ "name": "installed", "version": "0.0.0", "private": true }')
    await npm('install', '--silent', '--no-audit', '--no-fund', tarball)
    process.stdout.write(await npm('sbom', '--silent', '--sbom-format', 'cyclonedx'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
