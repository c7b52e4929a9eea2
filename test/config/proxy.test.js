'use strict'

const { test } = require('tap')
const { inspect } = require('node:util')
const { resolveOptions } = require('../../lib/config/options')
const { runProgram } = require('../support/program')

const TOLD = { NODE_USE_ENV_PROXY: '1' }

function resolved (url, environment) {
  const { exporter, warnings, news } = resolveOptions({ exporter: { url } }, environment)
  return { proxy: exporter.proxy, exporter, codes: warnings.map(({ code }) => code), text: warnings.map(({ message }) => message).join('\n'), news }
}

test('the collector\'s scheme chooses the proxy, and lower-case variables win', async (t) => {
  const environment = { ...TOLD, HTTP_PROXY: 'http://one:3128', HTTPS_PROXY: 'https://two' }
  t.match(resolved('http://collector:4318', environment).proxy, { host: 'one', port: 3128, isSecure: false, authorization: '' })
  t.match(resolved('https://collector', environment).proxy, { host: 'two', port: 443, isSecure: true })
  t.match(resolved('http://collector', { ...environment, http_proxy: 'http://[::1]' }).proxy, { host: '::1', port: 80 })
  t.equal(resolved('http://collector', { ...TOLD, HTTPS_PROXY: 'http://two' }).proxy, null)
  t.equal(resolved('http://collector', TOLD).proxy, null)
})

test('NO_PROXY is read as Node reads it', async (t) => {
  const rules = [
    ['collector', 'http://collector:4318', true],
    ['COLLECTOR', 'http://collector:4318', true],
    ['collector:4318', 'http://collector:4318', true],
    ['collector:1', 'http://collector:4318', false],
    ['collector:80', 'http://collector', true],
    ['a, collector ,b', 'http://collector', true],
    ['*', 'http://collector', true],
    ['example.com', 'http://otel.example.com', false],
    ['.example.com', 'http://otel.example.com', true],
    ['.example.com', 'http://example.com', true],
    ['.example.com', 'http://badexample.com', false],
    ['*.example.com', 'http://otel.example.com', true],
    ['*.example.com', 'http://example.com', false],
    ['10.0.0.1-10.0.0.9', 'http://10.0.0.5', true],
    ['10.0.0.1 - 10.0.0.9', 'http://10.0.0.9', true],
    ['10.0.0.1-10.0.0.9', 'http://10.0.0.10', false],
    ['200.0.0.1-250.0.0.1', 'http://230.1.1.1', true],
    ['10.0.0.1-', 'http://10.0.0.1', false],
    ['::1', 'http://[::1]:4318', true],
    [',', 'http://collector', false]
  ]
  for (const [list, url, isExcluded] of rules) {
    t.equal(resolved(url, { ...TOLD, HTTP_PROXY: 'http://proxy', NO_PROXY: list }).proxy === null, isExcluded, `${list} ${url}`)
  }
  t.equal(resolved('http://collector', { ...TOLD, HTTP_PROXY: 'http://proxy', NO_PROXY: 'other', no_proxy: 'collector' }).proxy, null)
})

test('if Node ignores the environment\'s proxies, one line reports that the exporter does, too', async (t) => {
  const { proxy, news, codes } = resolved('https://collector', { HTTPS_PROXY: 'http://user:secret@proxy', HTTP_PROXY: 'http://proxy' })
  t.equal(proxy, null)
  t.strictSame(codes, [])
  t.equal(news.length, 1)
  t.match(news[0], /HTTPS_PROXY.*NODE_USE_ENV_PROXY=1/)
  t.notMatch(news[0], /secret/)
  t.strictSame(resolved('https://collector', { HTTPS_PROXY: 'http://proxy', NO_PROXY: 'collector' }).news, [], 'it would not apply')
  t.strictSame(resolved('https://collector', { HTTP_PROXY: 'http://proxy' }).news, [])
  t.strictSame(resolveOptions({ exporter: 'none' }, { HTTP_PROXY: 'http://proxy' }).news, [])
})

test('a variable or a flag makes Node use proxies, and the last flag counts', async (t) => {
  const isUsed = (environment) => resolved('http://collector', { HTTP_PROXY: 'http://proxy', ...environment }).proxy !== null
  t.equal(isUsed({ NODE_USE_ENV_PROXY: '1' }), true)
  t.equal(isUsed({ NODE_USE_ENV_PROXY: '0' }), false)
  t.equal(isUsed({ NODE_OPTIONS: '--max-old-space-size=100 --use-env-proxy' }), true)
  t.equal(isUsed({ NODE_OPTIONS: '--use-env-proxy --no-use-env-proxy' }), false)
  t.equal(isUsed({ NODE_OPTIONS: '--no-use-env-proxy', NODE_USE_ENV_PROXY: '1' }), false)
})

test('the flag on the command line counts if Node has it', { skip: !process.allowedNodeEnvironmentFlags.has('--use-env-proxy') && 'this Node has no --use-env-proxy' }, async (t) => {
  const source = "const { exporter } = require('./lib/config/options').resolveOptions({ exporter: { url: 'http://collector' } }, { HTTP_PROXY: 'http://proxy' }); console.log(exporter.proxy?.host)"
  t.equal((await runProgram(['--use-env-proxy', '-e', source])).stdout.trim(), 'proxy')
  t.equal((await runProgram(['-e', source])).stdout.trim(), 'undefined')
})

test('an invalid proxy is logged without its secrets, and not used', async (t) => {
  for (const value of ['proxy:3128', 'socks5://proxy', 'http://us:secret@', 'nonsense']) {
    const { proxy, codes, text } = resolved('http://collector', { ...TOLD, HTTP_PROXY: value })
    t.equal(proxy, null, value)
    t.strictSame(codes, ['LT_WARN_ENV'])
    t.match(text, /HTTP_PROXY/)
    t.notMatch(text, /secret/)
  }
  const { proxy, codes, text } = resolved('http://collector', { ...TOLD, HTTP_PROXY: 'http://us:%E0secret@proxy' })
  t.equal(proxy.authorization, '')
  t.strictSame(codes, ['LT_WARN_ENV'])
  t.notMatch(text, /secret/)
})

test('the password does not appear in the options', async (t) => {
  const { exporter } = resolved('http://collector', { ...TOLD, HTTP_PROXY: 'http://user:secret@proxy:3128' })
  t.equal(exporter.proxy.authorization, `Basic ${Buffer.from('user:secret').toString('base64')}`)
  for (const text of [inspect(exporter, { depth: 9, showHidden: true }), JSON.stringify(exporter), JSON.stringify({ ...exporter.proxy })]) {
    t.notMatch(text, /secret|c2VjcmV0|dXNlcj/)
    t.match(text, /proxy/)
  }
})

test('headers that are credentials are not sent to a proxy over plain HTTP, whatever the collector\'s name', async (t) => {
  const { exporter, warnings } = resolveOptions({ exporter: { url: 'http://127.0.0.1:4318', headers: { authorization: 'Bearer x' } } }, { ...TOLD, HTTP_PROXY: 'http://proxy' })
  t.strictSame({ ...exporter.headers }, {})
  t.strictSame(warnings.map(({ code }) => code), ['LT_WARN_INSECURE_HEADERS'])
})
