'use strict'

// The versions of the measured packages. They are read from files, since most packages do not export package.json.

const fs = require('node:fs')
const path = require('node:path')

module.exports = versionsOf

// → { name: version } of the packages as `from` (a file) would resolve them
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
