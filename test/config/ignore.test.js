'use strict'

const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')

const ignores = (ignore, url, environment = {}) => resolveOptions({ ignore }, environment).ignore({ raw: { url } })

test('a string is a path in which * matches anything, including slashes', (t) => {
  const cases = [
    ['/health', '/health', true],
    ['/health', '/health?deep=1', true],
    ['/health', '/health#x', true],
    ['/health', '/health/', false],
    ['/health', '/healthz', false],
    ['/health', '/HEALTH', false],
    ['/assets/*', '/assets/', true],
    ['/assets/*', '/assets/a/b/c.js?v=/x', true],
    ['/assets/*', '/assets', false],
    ['/*/health', '/a/b/health', true],
    ['/*/health', '/health', false],
    ['*.js', '/a/b.js', true],
    ['*.js', '/a/b.jsx', false],
    ['/a*a', '/a', false],
    ['/a*a', '/aa', true],
    ['/a*b*c', '/a-b-c', true],
    ['/a*b*c', '/a-c-b', false],
    ['/a*bc*c', '/abc', false],
    ['/a**b', '/ab', true],
    ['*', '/anything', true],
    ['*', '', true],
    ['/a.c', '/abc', false],
    ['/a[b]c', '/a[b]c', true],
    ['/secret', '/x?next=/secret', false],
    ['/a*', 'http://host/a', false]
  ]
  for (const [glob, url, expected] of cases) t.equal(ignores([glob], url), expected, `${glob} ${url}`)
  t.end()
})

test('a hostile path is compared in linear time', (t) => {
  // A backtracking matcher would never finish these two.
  t.equal(ignores(['/*a*a*a*a*a*a*a*a*a*a*b'], `/${'a'.repeat(16000)}`), false)
  t.equal(ignores([`/${'*a'.repeat(500)}*b`], `/${'a'.repeat(16000)}c`), false)
  t.end()
})

test('the path is compared as the client sent it, before Fastify rewrites it', (t) => {
  const { ignore } = resolveOptions({ ignore: ['/public'] }, {})
  t.equal(ignore({ raw: { url: '/rewritten', originalUrl: '/public?x' } }), true)
  t.equal(ignore({ raw: { url: '/public', originalUrl: '/other' } }), false)
  t.equal(ignore({ raw: {} }), false)
  t.end()
})

test('a RegExp with state gives the same result each time and keeps its own state', (t) => {
  for (const flags of ['', 'g', 'y', 'gy', 'i']) {
    const expression = new RegExp('/internal', flags)
    expression.lastIndex = 3
    const { ignore } = resolveOptions({ ignore: expression }, {})
    for (let round = 0; round < 3; round++) t.equal(ignore({ raw: { url: '/internal/x?y' } }), true)
    t.equal(ignore({ raw: { url: '/other?/internal' } }), false)
    t.equal(expression.lastIndex, 3)
  }
  t.end()
})

test('a function gets the request, and its result counts as a boolean', (t) => {
  const request = { raw: { url: '/' }, method: 'OPTIONS' }
  const { ignore } = resolveOptions({ ignore: ({ method }) => method === 'OPTIONS' && 1 }, {})
  t.equal(ignore(request), true)
  t.equal(ignore({ raw: { url: '/' }, method: 'GET' }), false)
  t.end()
})

test('an async function ignores nothing and causes no unhandled rejection', async (t) => {
  const { ignore } = resolveOptions({ ignore: async () => { throw new Error('late') } }, {})
  t.throws(() => ignore({ raw: { url: '/' } }), /must return its answer, not a promise/)
})

test('patterns that can never match are rejected', (t) => {
  for (const ignore of ['health', '', '/a?b=1', ['/ok', 'no'], 5, null, {}, [undefined]]) {
    t.throws(() => resolveOptions({ ignore }, {}), { code: 'LT_ERR_OPTION_INVALID', message: /`ignore(\[\d\])?` must be a path/ })
  }
  t.equal(resolveOptions({ ignore: [] }, {}).ignore, null)
  t.end()
})

test('OTEL_FASTIFY_IGNORE_PATHS applies if the option is not set', (t) => {
  const environment = { OTEL_FASTIFY_IGNORE_PATHS: '/health, /assets/*' }
  t.equal(ignores(undefined, '/assets/x', environment), true)
  t.equal(ignores(undefined, '/health', environment), true)
  t.equal(ignores(undefined, '/users', environment), false)
  t.equal(ignores(['/users'], '/health', environment), false)
  t.equal(resolveOptions({ ignore: [] }, environment).ignore, null)
  t.end()
})
