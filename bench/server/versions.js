'use strict'

// What was measured, by name: read from the files, since most packages do not export package.json.

const fs = require('node:fs')
const path = require('node:path')

module.exports = versionsOf

// → { name: version } of the packages that `from` (a file) would load
function versionsOf (from, names) {
  const found = {}
  for (const name of names) found[name] = versionOf(path.dirname(from), name)
  return found
}

function versionOf (folder, name) {
  const file = path.join(folder, 'node_modules', name, 'package.json')
  if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8')).version
  const parent = path.dirname(folder)
  return parent === folder ? undefined : versionOf(parent, name)
}
