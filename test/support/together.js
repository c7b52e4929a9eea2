'use strict'

// node test/support/together.js file…
//
// Runs test files one after the other in one process. Each is a subtest, and gets that subtest when it requires tap. The environment
// is restored between files. tap ends a file that takes longer than TAP_TIMEOUT seconds.

const path = require('node:path')

const files = process.argv.splice(2)
const ROOT = process.cwd()
const timeout = Number(process.env.TAP_TIMEOUT ?? 60) * 1000
const program = process.argv[1]
process.argv[1] = path.resolve('t') // tap names its fixture folders after it. Some tests print a path, and a long one would be cut
const tap = require('tap')
process.argv[1] = program
const loaded = require.cache[require.resolve('tap')]

tap.setTimeout(0)

for (const file of files) {
  tap.test(file, { timeout }, (t) => {
    const env = { ...process.env }
    t.teardown(() => {
      for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
      Object.assign(process.env, env)
    })
    loaded.exports = t
    require(path.join(ROOT, file))
    t.end()
  })
}
