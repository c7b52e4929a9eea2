'use strict'

// Where Node itself loses the context: a callback that is called from somebody else's stack, here one timer for all.
// `request.trace` always works; `run` and `bind` bring `lightTrace.current()` back. See docs/context.md.

const Fastify = require('fastify')
const lightTrace = require('light-trace')

// A batcher as many libraries have one inside: what waits is called from the first caller's timer.
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
  // The second caller of each pair set the timer: it is its context that everybody else gets.
  const [lost] = await Promise.all([app.inject('/lost'), app.inject('/bound')])
  const [bound] = await Promise.all([app.inject('/bound'), app.inject('/lost')])
  console.log(`lost: ${lost.body}, bound: ${bound.body}`)
  await app.close()
}

main()

// Prints:
// lost: false, bound: true
