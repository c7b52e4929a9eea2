'use strict'

// Where Node itself loses the context: a callback that runs in another request's context, here because two requests share a timer.
// `request.trace` always works; `run` and `bind` restore `lightTrace.current()`. See docs/context.md.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

// A batcher, as many libraries contain. Callbacks run from one shared timer.
const waiting = []
function batched (callback) {
  waiting.push(callback)
  if (waiting.length === 2) setTimeout(() => { for (const call of waiting.splice(0)) call() }, 1)
}

const app = Fastify()
app.register(lightTrace, { exporter: 'none' })
app.get('/lost', (request, reply) => {
  batched(() => reply.send(lightTrace.current() === request.trace))
})
app.get('/bound', (request, reply) => {
  batched(request.trace.bind(() => reply.send(lightTrace.current() === request.trace)))
})

async function main () {
  // The second caller of each pair sets the timer, so all callbacks run in its context.
  const [lost] = await Promise.all([app.inject('/lost'), app.inject('/bound')])
  const [bound] = await Promise.all([app.inject('/bound'), app.inject('/lost')])
  console.log(`lost: ${lost.body}, bound: ${bound.body}`)
  await app.close()
}

main()

// Prints:
// lost: false, bound: true
