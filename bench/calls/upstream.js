'use strict'

// What is called: bare Fastify, which tells what a request costs here. It answers 500 to a call that should
// carry a trace and does not, and to one that should not and does.

const Fastify = require('fastify')
const { answer } = require('../run/ipc')

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]$/

const app = Fastify()
let served = 0
let before = process.cpuUsage()

app.get('/plain', async ({ headers }, reply) => answerTo(headers.traceparent === undefined, reply))
app.get('/traced', async ({ headers }, reply) => answerTo(TRACEPARENT.test(headers.traceparent), reply))

function answerTo (isRight, reply) {
  served++
  if (!isRight) reply.code(500)
  return { hello: 'world' }
}

app.listen({ port: 0, host: '127.0.0.1' }).then(() => process.send({ ready: true, port: app.server.address().port }))

answer({
  reset () {
    served = 0
    before = process.cpuUsage()
  },
  microsPerRequest () {
    const { user, system } = process.cpuUsage(before)
    return served === 0 ? null : (user + system) / served
  }
})
