'use strict'

const { test } = require('tap')
const { countsOf } = require('../../scripts/counts')

test('a suite counted what its last line says', async (t) => {
  t.same(countsOf('noise\n3 passed, 0 failed\n', 0), { passed: 3, failed: 0 })
  t.same(countsOf('1 passed, 1 failed\n# { total: 9, pass: 9 }\n7 passed, 2 failed', 1), { passed: 7, failed: 2 })
  t.same(countsOf('7 passed, 2 failed\n# { total: 9, pass: 8, fail: 1 }\n', 1), { passed: 8, failed: 1 }, 'of either kind')
  t.same(countsOf('# { total: 5, pass: 5 }\n# time=1ms\n# { total: 41, pass: 39, fail: 1, todo: 1 }\n', 1), { passed: 39, failed: 1 })
  t.same(countsOf('# { total: 41, pass: 41 }\n', 0), { passed: 41, failed: 0 })
})

test('a suite that counted nothing, or did not end well, failed', async (t) => {
  t.same(countsOf('', 0), { passed: 0, failed: 1 })
  t.same(countsOf('all is well, 3 passed, 0 failed, really', 0), { passed: 0, failed: 1 })
  t.same(countsOf('0 passed, 0 failed\n', 0), { passed: 0, failed: 1 })
  t.same(countsOf('# { total: 2, skip: 2 }', 0), { passed: 0, failed: 1 })
  t.same(countsOf('3 passed, 0 failed\n', 1), { passed: 3, failed: 1 })
  t.same(countsOf('3 passed, 0 failed\n', 'SIGKILL'), { passed: 3, failed: 1 })
})
