'use strict'

// The file to deploy to AWS Lambda. The response waits until the spans are delivered, because Lambda freezes the process afterwards.

const awsLambdaFastify = require('@fastify/aws-lambda')
const Fastify = require('fastify')
const lightTrace = require('light-trace')

const app = Fastify()
app.register(lightTrace, { serviceName: 'orders' })
app.get('/orders/:id', async (request) => {
  return request.trace.withSpan('load order', async () => ({ id: request.params.id }))
})

exports.handler = lightTrace.flushAfter(app, awsLambdaFastify(app), { timeoutMs: 500 })
