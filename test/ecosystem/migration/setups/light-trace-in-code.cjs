'use strict'

// Registers light-trace like an app does, as its first plugin, with the options of docs/migration.md. An additional route reports whether
// the contexts agree in a handler.

const { subscribe } = require('node:diagnostics_channel')
const { runInThisContext } = require('node:vm')
const { trace } = require('@opentelemetry/api')
const lightTrace = require('light-trace')
const { docsCode } = require('../../../test/support/docs-code.js')

const [sideBySide, inOneTrace] = docsCode('migration.md', 'Run both for a while', 'js')
  .map((code) => runInThisContext(`(${/app\.register\(lightTrace, (\{.*\})\)/.exec(code)[1]})`))

module.exports = { register, sideBySide, inOneTrace }

function register (options) {
  subscribe('fastify.initialization', ({ fastify }) => {
    fastify.register(lightTrace, options)
    fastify.get('/contexts', async (request) => {
      await new Promise((resolve) => setImmediate(resolve))
      return {
        isCurrent: lightTrace.current() === request.trace,
        traceIds: [request.trace.traceId, lightTrace.current()?.traceId, trace.getActiveSpan()?.spanContext().traceId]
      }
    })
  })
}
