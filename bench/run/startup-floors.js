'use strict'

// What of a start is Node's and not ours: the same files as light-trace loads, under a folder of their own,
// once empty, and once with their text in a function that nobody calls. The first is what Node takes to find
// and read so many files; the second adds what V8 takes to read so much code.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const root = path.join(__dirname, '../..')

const FLOORS = [
  { name: 'files-empty', label: 'as many empty files', text: () => "'use strict'\n" },
  { name: 'files-unused', label: 'the same files, nothing of them run', text: (source) => `function unused (module, exports, require) {${source}\n}\n` }
]

module.exports = { makeFloors }

/**
 * @param {string[]} files that light-trace loads
 * @returns {{ cases: object[], remove () }}
 */
function makeFloors (files) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'light-trace-startup-'))
  const cases = FLOORS.map(({ name, label, text }) => {
    const copies = files.map((file) => copy(file, path.join(folder, name), text))
    const list = path.join(folder, `${name}.json`)
    fs.writeFileSync(list, JSON.stringify(copies))
    return { name, label, setup: 'server/setups/files', options: { list } }
  })
  return { cases, remove: () => fs.rmSync(folder, { recursive: true }) }
}

function copy (file, folder, text) {
  const source = fs.readFileSync(file, 'utf8')
  const target = path.join(folder, path.relative(root, file).replaceAll('..', 'up'))
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(target, file.endsWith('.json') ? source : text(source))
  return target
}
