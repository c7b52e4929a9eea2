'use strict'

const { readdirSync } = require('node:fs')
const path = require('node:path')

const NOT_OURS = new Set(['node_modules', '.venv']) // many files, which a walk through all would take seconds for

module.exports = { filesBelow }

/** Our files below a folder, sorted, as paths from it. */
function filesBelow (folder) {
  return readdirSync(folder, { withFileTypes: true }).sort((a, b) => a.name < b.name ? -1 : 1).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name]
    return NOT_OURS.has(entry.name) ? [] : filesBelow(path.join(folder, entry.name)).map((name) => path.join(entry.name, name))
  })
}
