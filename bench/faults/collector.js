'use strict'

// Runs the scripted collector of the fault tests in its own process. Messages: { how }, { isDown }, { flapEveryMs }, 'count'. It replies
// to each once it is done.

const { setTimeout: pause } = require('node:timers/promises')
const { startFakeCollector } = require('../../test/support/fake-collector')
const { makeCertificate } = require('../../test/support/certificate')

const isTls = process.argv[2] === 'tls'
const counts = { requests: 0, spans: 0, compressed: 0 }
const nobody = { teardown () {} }
const flapping = { everyMs: 0, isOver: null }

main()

async function main () {
  const collector = await startFakeCollector(nobody, isTls ? { tls: makeCertificate() } : {})
  process.on('disconnect', () => process.exit())
  process.on('message', async (message) => {
    await onMessage(collector, message)
    count(collector)
    process.send(message === 'count' ? counts : 'done')
  })
  process.send(collector.url)
}

async function onMessage (collector, { how, isDown, flapEveryMs }) {
  if (how !== undefined) collector.script = [how]
  if (flapEveryMs !== undefined) {
    flapping.everyMs = flapEveryMs
    if (flapEveryMs > 0) flapping.isOver = flap(collector)
    else await flapping.isOver
  }
  if (isDown === true) await collector.down()
  if (isDown === false) {
    await collector.down()
    await collector.up()
  }
}

async function flap (collector) {
  while (flapping.everyMs > 0) {
    await collector.down()
    await pause(flapping.everyMs)
    await collector.up()
    await pause(flapping.everyMs)
  }
}

// Discards the requests that it has counted: a run produces millions of spans.
function count ({ requests }) {
  for (const { spans, headers } of requests.splice(0)) {
    counts.requests++
    counts.spans += spans.length
    if (headers['content-encoding'] === 'gzip') counts.compressed++
  }
}
