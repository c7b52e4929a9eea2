'use strict'

// node scripts/check-release.js v1.2.3: whether this checkout can be published under that tag. What is missing is
// printed, a line each. CONTRIBUTING.md has the steps.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')

module.exports = { whatIsMissing }

if (require.main === module) {
  const read = (file) => readFileSync(join(__dirname, '..', file), 'utf8')
  const missing = whatIsMissing({ tag: process.argv[2], manifest: JSON.parse(read('package.json')), changelog: read('CHANGELOG.md') })
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
