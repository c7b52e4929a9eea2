'use strict'

// The files of the repository that a user's process can come to load: the package's entries, and all that they
// require or import of ours, to the end.

const { existsSync, readFileSync } = require('node:fs')
const { dirname, join, relative } = require('node:path')

const ROOT = join(__dirname, '..')

module.exports = { entries, requiredFiles }

/** What package.json names: relative to the root. */
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
    for (const [, path] of readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:require\(|from )'(\.\.?(?:\/[^']*)?)'/g)) {
      todo.push(relative(ROOT, fileOf(join(ROOT, dirname(file), path))))
    }
  }
  return found
}

function fileOf (path) {
  return [path, `${path}.js`, join(path, 'index.js')].find((file) => /\.\w+$/.test(file) && existsSync(file))
}
