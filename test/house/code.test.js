'use strict'

// A published figure belongs to the code that it describes: bench/run/code.js.

const { join } = require('node:path')
const { test } = require('tap')
const { codeOf, hashOf, hotHash, isOfToday, rowsIn, unknownRows } = require('../../bench/run/code')
const { refusedRows, staleRows, resultsByName } = require('../../bench/report/publish')
const { describeCommit } = require('../../bench/run/machine')
const { hotFiles } = require('../../scripts/hot-functions')
const { runProgram, ROOT } = require('../support/program')

const NOWHERE = 'f'.repeat(40)
const here = describeCommit(ROOT)
const inAHistory = unknownRows([]) === null ? { skip: 'a shallow clone, or none: the history is not known' } : {}

test('every published row is of a commit in the history: npm run bench:cost -- --list has the commands to measure it again', inAHistory, async (t) => {
  t.same(refusedRows(), [])
})

test('the README\'s figures of light-trace were measured with today\'s hot files: npm run bench:cost -- --readme', async (t) => {
  t.same(staleRows(resultsByName()), [])
})

test('a row of a commit that is not in the history is rejected', inAHistory, async (t) => {
  const rows = [{ name: 'a', commit: here.commit }, { name: 'b', commit: NOWHERE }, { name: 'c', commit: null }]
  t.same(unknownRows(rows).map(({ name }) => name), ['b', 'c'])
})

test('a caption reports that hot files have changed since its rows were counted', inAHistory, async (t) => {
  const short = here.commit.slice(0, 7)
  t.equal(codeOf([here]), `commit ${short}`)
  t.match(codeOf([{ ...here, hot: 'other' }]), new RegExp(`^counted at ${short}; since then, (?:\\d+ commits? changed files that run per request|files that run per request have uncommitted changes)$`))
  t.match(codeOf([here, { commit: NOWHERE, hot: 'other' }]), new RegExp(`^counted row by row at commits ${short}, fffffff; since the oldest, files that run per request have changed$`))
})

test('a row from before rows had a hash is checked by its commit', inAHistory, async (t) => {
  t.notOk(isOfToday({ commit: NOWHERE }))
  t.ok(isOfToday({ commit: NOWHERE, hot: hotHash() }))
  t.ok(isOfToday({ commit: NOWHERE, hot: null }), "Fastify's own, and another tracer's")
})

test('comments and blank lines do not outdate a row, and code does', async (t) => {
  const hash = (text) => hashOf([['lib/a.js', text]])
  const code = "const a = 'https://x'\nmodule.exports = a\n"
  t.equal(hash(`// why\n/**\n * what\n */\n${code.replace('\n', ' // so\n\n')}`), hash(code))
  t.not(hash(code.replace('a =', 'b =')), hash(code))
  t.not(hashOf([['lib/b.js', code]]), hash(code))
})

test('each row of a file with several runs has its own code', async (t) => {
  const row = { name: 'real', commit: 'a', hot: 'b' }
  t.match(rowsIn('instructions', { commit: 'z', nodes: { 24: { rows: [row] } } }), [{ ...row, name: 'real, Node 24' }])
  t.match(rowsIn('seeds', { tables: [row] }), [row])
  t.match(rowsIn('v8', { commit: 'a', hot: 'b', rows: [] }), [{ name: 'v8', commit: 'a', hot: 'b' }])
})

// Without one, a change to the file would leave the README's figures unchanged.
for (const isSampled of [true, false]) {
  test(`each file of lib that runs for a request has a HOT comment, ${isSampled ? '' : 'not '}sampled`, async (t) => {
    const { stdout, stderr } = await runProgram([join('test', 'fixtures', 'files-of-a-request.js'), '{"metrics":true}', String(isSampled)], { OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' })
    t.equal(stderr, '')
    const files = JSON.parse(stdout)
    t.ok(files.length > 15)
    const hot = hotFiles()
    t.same(files.filter((file) => !hot.includes(file)), [])
  })
}
