'use strict'

const { test } = require('tap')
const { AsyncLocalStorage } = require('node:async_hooks')
const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')

const node = process.version
const [fastify, api] = ['fastify', '@opentelemetry/api'].map((name) => // read from the file, because not all of them export their package.json
  JSON.parse(readFileSync(join(__dirname, '..', 'node_modules', name, 'package.json'))).version)

// scripts/matrix.js expects certain versions in a cell. The comment line of this test proves that the suite ran with them.
// P12: scripts/matrix.js starts it on each
test('the suite runs on the versions that it was started for', async (t) => {
  t.comment(`running on node ${node}, fastify ${fastify}, api ${api}`)
  const expected = JSON.parse(process.env.MATRIX_EXPECTS ?? '{}')
  if (expected.node) {
    t.ok(node.startsWith(expected.node), `${node} is a ${expected.node}`)
    t.equal(execFileSync('node', ['--version']).toString().trim(), node, 'a child process named node has the same version')
  }
  if (expected.flag) t.equal(process.env.NODE_OPTIONS, expected.flag)
  if (expected.flag === '--experimental-async-context-frame') t.notOk('_enable' in AsyncLocalStorage.prototype, 'AsyncLocalStorage does not use async_hooks')
  if (expected.fastify) t.equal(fastify, expected.fastify)
  if (expected['@opentelemetry/api']) t.equal(api, expected['@opentelemetry/api'])
  t.ok(Number(process.versions.node.split('.')[0]) >= 20)
})
