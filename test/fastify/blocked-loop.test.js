'use strict'

// The option `blockedLoop`. test/slow/blocked-loop.test.js tests what it reports. That test is about durations, so nothing may run beside
// it.

const vm = require('node:vm')
const { test } = require('tap')
const Fastify = require('fastify')
const lightTrace = require('../..')
const { resolveOptions } = require('../../lib/config/options')
const { Stacks } = require('../../lib/features/blocked-loop/blocked-line')

test('an invalid threshold is rejected at register', async (t) => {
  for (const blockedLoop of [{ afterMs: 19 }, { afterMs: NaN }, { afterMs: Infinity }, { afterMs: '100' }, { after: 100 }, 100]) {
    t.throws(() => resolveOptions({ slow: { blockedLoop } }, {}), { code: /^LT_ERR_OPTION_/ }, JSON.stringify(blockedLoop))
  }
  t.same(resolveOptions({ slow: { blockedLoop: true } }, {}).blockedLoop, { afterMs: 100 })
  t.same(resolveOptions({ slow: { blockedLoop: { afterMs: 20 } } }, {}).blockedLoop, { afterMs: 20 })
})

test('LIGHT_TRACE_BLOCKED_LOOP is true, false or milliseconds, and code wins', async (t) => {
  const resolved = (value, options = {}) => resolveOptions(options, { LIGHT_TRACE_BLOCKED_LOOP: value })
  t.same(resolved('true').blockedLoop, { afterMs: 100 })
  t.same(resolved('250').blockedLoop, { afterMs: 250 })
  for (const value of ['', 'false']) t.equal(resolved(value).blockedLoop, null)
  t.equal(resolved('true', { slow: { blockedLoop: false } }).blockedLoop, null)
  for (const value of ['yes', '5', '-1', '1e3']) {
    const { blockedLoop, warnings } = resolved(value)
    t.equal(blockedLoop, null)
    t.match(warnings, [{ code: 'LT_WARN_ENV', message: /^LIGHT_TRACE_BLOCKED_LOOP is ignored/ }])
  }
})

// Like the worker's command: samples the running code at a given time, that many milliseconds after the request to sample.
function look (stacks, at, askedMs) { stacks.take(look, at, askedMs) }
function command (stacks, at, askedMs) { look(stacks, at, askedMs) }

/** Returns the line that is blamed for a block of `duration` ms. `looks` are `[function, at, askedMs]`. */
function blamed (duration, ...looks) {
  const stacks = new Stacks()
  const functions = {
    first () {
      for (const [name, at, askedMs] of looks) if (name === 'first') command(stacks, at, askedMs); else functions.second(at, askedMs)
    },
    second (at, askedMs) {
      const answer = command(stacks, at, askedMs)
      return answer
    }
  }
  functions.first()
  const { code } = stacks.longest(duration)
  return code.text.replace(/^ (.*) \(.*$/, '$1')
}

test('a line is blamed without a mark if it was seen running longer than all unseen time', async (t) => {
  const each10 = (name, from, to) => Array.from({ length: (to - from) / 10 }, (_, i) => [name, from + 10 * (i + 1), 1])
  t.equal(blamed(300, ['first', 101, 1], ...each10('first', 100, 300)), 'at first', 'a loop')
  t.equal(blamed(110, ['first', 101, 1]), 'at or just before first', 'seen once')
  t.equal(blamed(130, ['first', 101, 1], ...each10('first', 100, 130)), 'at or just before first', 'a short one, which may follow native code')
  t.equal(blamed(143, ['second', 130, 30], ['second', 140, 1]), 'at or just before second', 'native code, and the code after it')
  t.equal(blamed(180, ['first', 130, 30], ...each10('second', 130, 180)), 'at or just before first', 'the code right after it, and then')
  t.equal(blamed(500, ['first', 130, 30], ...each10('second', 130, 500)), 'at second', 'code that ran longer than the native code before it')
  t.equal(blamed(500, ['first', 101, 1], ...each10('second', 100, 500)), 'at second', 'the code seen first was not seen running')
  t.equal(blamed(400, ['first', 101, 1], ['first', 200, 90], ['first', 300, 90], ['first', 400, 90]), 'at or just before first', 'native code, again and again')
})

// Runs `body` as a function of a file with this name.
function inFile (filename, name, body, values = {}) {
  return vm.compileFunction(`return function ${name} (...args) {\n${body}\n}`, Object.keys(values), { filename })(...Object.values(values))
}

// A WebAssembly function that calls `callee`.
function wasmThatCalls (callee) {
  const bytes = Buffer.from('0061736d01000000010401600000020701016d016600000302010007060102676f00010a0601040010000b', 'hex')
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { f: callee } }).exports.go
}

// The result for a block of 130 ms in which `run` called the command twice.
function resultOf (run) {
  const stacks = new Stacks()
  const looks = [101, 230]
  const look = () => stacks.take(look, looks.shift(), 1)
  const command = () => look()
  for (let left = looks.length; left > 0; left--) run(command)
  return stacks.longest(130)
}

test('Node loading a module for the first import is not the fault of a line or a request', async (t) => {
  for (const file of ['cjs-module-lexer/dist/lexer', 'cjs-module-lexer/lexer', 'amaro/dist/index']) {
    const { request, code } = resultOf((command) => inFile(`node:internal/deps/${file}`, 'parse', 'args[0]()')(wasmThatCalls(command)))
    t.equal(request, undefined)
    t.equal(code.text, ' by Node, which was loading a module')
    t.match(code.attributes, { 'light_trace.blocked_loop.is_module_loader': true, 'code.stacktrace': new RegExp(`at parse \\(node:internal/deps/${file}:\\d`) })
    t.same(Object.keys(code.attributes).filter((key) => /path|line/.test(key)), [], 'no line')
  }
})

test('WebAssembly is to blame if the application called it, and its caller if Node called it', async (t) => {
  const ofUser = resultOf((command) => inFile('/app/hash.js', 'hash', 'args[0]()')(wasmThatCalls(command)))
  t.match(ofUser.code.text, / \(wasm:.*\)$/)
  const ofNode = resultOf((command) => inFile('/app/load.js', 'load', 'return args[0](args[1])')(inFile('node:internal/deps/undici/undici', 'execute', 'args[0]()'), wasmThatCalls(command)))
  t.match(ofNode.code.text, / load \(\/app\/load\.js:\d+\)$/)
})

test('without the option no worker is started, and none of its code is loaded', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, { exporter: 'none', registerGlobals: false })
  await app.ready()
  t.notOk(Object.keys(require.cache).some((file) => file.includes('blocked-loop.js')))
})
