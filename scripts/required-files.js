'use strict'

// Lists which of our files a file requires or imports, and all files that a user's process may load: the package's entries and everything
// that they require, directly or indirectly.

const { existsSync, readFileSync } = require('node:fs')
const { dirname, join, relative } = require('node:path')

const ROOT = join(__dirname, '..')

module.exports = { entries, requiredBy, requiredFiles }

/** The entry files in package.json, relative to the root. */
function entries () {
  const { exports: entryPoints } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return ['index.js', 'index.d.ts', ...Object.values(entryPoints).flatMap((entry) => Object.values(typeof entry === 'string' ? [entry] : entry))]
    .map((entry) => relative(ROOT, join(ROOT, entry)))
}

/** @returns {Set<string>} relative to the root, with `/` */
function requiredFiles () {
  const found = new Set()
  const todo = entries()
  while (todo.length > 0) {
    const file = todo.pop().replaceAll('\\', '/')
    if (found.has(file)) continue
    found.add(file)
    if (!/\.m?js$/.test(file)) continue
    for (const { path, target } of requiredBy(file)) {
      if (target === undefined) throw new Error(`${file} requires ${path}, which is not there`)
      todo.push(target)
    }
  }
  return found
}

/** @returns {{ path: string, target: string | undefined }[]} path: as written in the file; target: the file, relative to the root, with `/` */
function requiredBy (file) {
  return Array.from(readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:require\(|from )'(\.\.?(?:\/[^']*)?)'/g), ([, path]) => {
    const found = fileOf(join(ROOT, dirname(file), path))
    return { path, target: found && relative(ROOT, found).replaceAll('\\', '/') }
  })
}

function fileOf (path) {
  return [path, `${path}.js`, join(path, 'index.js')].find((file) => /\.\w+$/.test(file) && existsSync(file))
}
