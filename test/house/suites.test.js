'use strict'

// Every test file belongs to a suite, and the runner accepts only files that have run an assertion. This protects contributors from a
// "passed" for tests that never ran.

const { join, relative, sep } = require('node:path')
const { test, setTimeout } = require('tap')
const { testFiles, testsIn, NEEDS_MORE, LEFT_TO_THE_MATRIX, LEFT_TO_CI, HOUSE } = require('../../scripts/tests')
const { run } = require('../../scripts/run')
const { countsOf } = require('../../scripts/counts')
const { SUITES } = require('../../scripts/suites')

setTimeout(240_000) // ten processes, one after the other, on a busy machine

const { scripts } = require('../../package.json')
const ROOT = join(__dirname, '..', '..')
const RUNNER = join(ROOT, 'scripts', 'tests.js')
const node = (...args) => run(process.execPath, args, { cwd: ROOT })

test('npm test and the matrix run every file that needs only Node', async (t) => {
  const all = testFiles({ all: true })
  t.ok(all.length > 140)
  t.same(testFiles().filter((file) => !file.startsWith(HOUSE)), all.filter((file) => !LEFT_TO_THE_MATRIX.includes(file)))
  t.ok(testFiles().some((file) => file.startsWith(HOUSE)))
  for (const file of LEFT_TO_CI) t.ok(testsIn('test/house').includes(file), `${file} is run by the suite house`)
  for (const file of LEFT_TO_THE_MATRIX) t.ok(all.includes(file), `${file} is run by the matrix`)
  const elsewhere = testsIn('test').filter((file) => !all.includes(file) && !file.startsWith(HOUSE))
  t.same([...new Set(elsewhere.map((file) => file.split(sep)[1]))], NEEDS_MORE)
  t.same(Object.values(SUITES).flatMap(({ folders = [] }) => folders).filter((folder) => folder !== 'test/house').sort(), NEEDS_MORE.map((folder) => `test/${folder}`), 'a suite runs each')
})

test('npm test runs lint, types and the files', async (t) => {
  t.equal(scripts.test, 'node scripts/tests.js --beside lint --beside test:types')
  t.equal(scripts['test:unit'], 'node scripts/tests.js')
})

const TAP = "const { test } = require('tap')\n"
const FILES = {
  'passes.test.js': `${TAP}test('a', async (t) => { t.comment('a note'); t.ok(1); t.ok(2) })`,
  'fails.test.js': `${TAP}test('a', async (t) => { t.ok(1); t.ok(0, 'this one') })`,
  'skips.test.js': `${TAP}test('a', { skip: 'not on this Node' }, async () => {})`,
  'no-test.js': 'process.exit(1)',
  deep: {
    'throws.test.js': 'throw new Error(\'no tests here\')',
    'asserts-nothing.test.js': '',
    'ends-too-early.test.js': `// Alone in its process: it ends it.\n${TAP}test('a', async (t) => { t.ok(1); process.exit(0) })`
  }
}

test('a file passes with at least one pass and no failure, and the last line is the sum of all tests', async (t) => {
  const folder = relative(ROOT, t.testdir(FILES))
  const { code, output } = await node(RUNNER, folder)
  t.equal(code, 1)
  for (const [name, line] of [
    ['passes.test.js', 'ok .*  1 passed'], ['fails.test.js', 'FAILED .*  0 passed'], ['skips.test.js', 'ok .*  0 passed'], ['deep.throws.test.js', 'FAILED .*  0 passed'],
    ['deep.asserts-nothing.test.js', 'FAILED .*  0 passed'], ['deep.ends-too-early.test.js', 'FAILED .*  \\d passed']
  ]) t.match(output, new RegExp(`^${line.replace('.*', `.*${name}`)}, \\d+\\.\\d s$`, 'm'), name)
  for (const shown of [/^ +# a note$/m, /not ok 2 - this one/, /not ok 1 - no tests here/, /asserts-nothing\.test\.js ended with 1$/m]) t.match(output, shown)
  t.notMatch(output, /^ *ok \d/m, 'what passed is not printed')
  t.match(output, /^6 files, \d+ s(?:, \d+ s of CPU)?\n[12] passed, [4-9] failed\n$/m)
})

test('if a file ends the process that its folder shares, it and the later files have failed', async (t) => {
  const folder = relative(ROOT, t.testdir({
    'a.test.js': `${TAP}test('a', async (t) => { process.env.OF_A = '1'; t.equal(process.pid, globalThis.shared ??= process.pid) })`,
    'b.test.js': `${TAP}test('b', async (t) => { t.equal(process.pid, globalThis.shared); t.notOk('OF_A' in process.env) })`,
    'c.test.js': `${TAP}test('c', async (t) => { t.ok(1); process.exit(0) })`,
    'd.test.js': `${TAP}test('d', async (t) => t.ok(1))`
  }))
  const { code, output } = await node(RUNNER, folder)
  t.equal(code, 1)
  t.same(output.match(/^\w+ +\S+[abcd]\.test\.js /gm).map((line) => /^(\w+) .*([abcd])\.test/.exec(line).slice(1).join(' ')), ['ok a', 'ok b', 'FAILED c', 'FAILED d'])
  t.match(output, /\n4 files, \d+ s(?:, \d+ s of CPU)?\n2 passed, 2 failed\n$/)
})

test('a failure after the last file of a shared process is a failure', async (t) => {
  const folder = relative(ROOT, t.testdir({
    'a.test.js': `${TAP}test('a', async (t) => t.ok(1))`,
    'b.test.js': `${TAP}test('b', async (t) => t.ok(1))\nprocess.on('exit', () => { process.exitCode = 1 })`
  }))
  const { code, output } = await node(RUNNER, folder)
  t.equal(code, 1)
  t.match(output, /^FAILED the process of \S+a\.test\.js and others /m)
  t.match(output, /\n2 passed, 1 failed\n$/)
})

test('a script that runs among the files counts as a test', async (t) => {
  const file = relative(ROOT, join(t.testdir(FILES), 'passes.test.js'))
  const { code, output } = await node(RUNNER, '--beside', 'test:no-such-script', file)
  t.equal(code, 1)
  t.match(output, /^npm run test:no-such-script ended with 1$/m)
  t.match(output, /\n1 passed, 1 failed\n$/)
})

test('the exit code is 0 if nothing fails', async (t) => {
  const file = relative(ROOT, join(t.testdir(FILES), 'passes.test.js'))
  const { code, output } = await node(RUNNER, file)
  t.equal(code, 0)
  t.match(output, /\n1 files, \d+ s(?:, \d+ s of CPU)?\n1 passed, 0 failed\n$/)
})

test('a file that does not end is killed, and has failed', async (t) => {
  const file = relative(ROOT, join(t.testdir({ 'goes-on.test.js': 'setInterval(() => {}, 1000)' }), 'goes-on.test.js'))
  const program = `require(${JSON.stringify(RUNNER)}).runFiles([${JSON.stringify(file)}], { deadlineMs: 500 }).then((sum) => console.log(JSON.stringify(sum)))`
  const { output } = await node('-e', program)
  t.match(output, /goes-on\.test\.js ended with (?:SIGTERM|1)\n\{"passed":0,"failed":1\}\n$/)
})

test('the count of a suite is in its last line', async (t) => {
  t.same(countsOf('noise\n3 passed, 0 failed\n', 0), { passed: 3, failed: 0 })
  t.same(countsOf('1 passed, 1 failed\n# { total: 9, pass: 9 }\n7 passed, 2 failed', 1), { passed: 7, failed: 2 })
  t.same(countsOf('7 passed, 2 failed\n# { total: 9, pass: 8, fail: 1 }\n', 1), { passed: 8, failed: 1 }, 'of either kind')
  t.same(countsOf('# { total: 5, pass: 5 }\n# time=1ms\n# { total: 41, pass: 39, fail: 1, todo: 1 }\n', 1), { passed: 39, failed: 1 })
  t.same(countsOf('# { total: 41, pass: 41 }\n', 0), { passed: 41, failed: 0 })
})

test('a suite that counted nothing, or ended with an error, has failed', async (t) => {
  t.same(countsOf('', 0), { passed: 0, failed: 1 })
  t.same(countsOf('all is well, 3 passed, 0 failed, really', 0), { passed: 0, failed: 1 })
  t.same(countsOf('0 passed, 0 failed\n', 0), { passed: 0, failed: 1 })
  t.same(countsOf('# { total: 2, skip: 2 }', 0), { passed: 0, failed: 1 })
  t.same(countsOf('3 passed, 0 failed\n', 1), { passed: 3, failed: 1 })
  t.same(countsOf('3 passed, 0 failed\n', 'SIGKILL'), { passed: 3, failed: 1 })
})
