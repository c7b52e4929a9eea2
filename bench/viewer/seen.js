'use strict'

// Measures the time from the response of a request until a page has the trace. The app runs under the light-trace command. The page is a
// reader of the live events.

const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { readEvents } = require('../../viewer/commands/event-stream')
const { startCommand, median } = require('./process')

const REQUESTS = 60
const APP = `
const app = require('fastify')()
app.get('/users/:id', async (request) => ({ id: request.params.id }))
app.listen({ port: 0, host: '127.0.0.1' }).then((address) => console.log('app at ' + address + '.'))
`

async function measureSeen () {
  // Inside the repository, where Fastify is installed.
  const cwd = mkdtempSync(path.join(__dirname, '../../.cache-viewer-'))
  writeFileSync(path.join(cwd, 'app.js'), APP)
  const viewer = await startCommand(['app.js'], { cwd, ready: /app at (\S+)\./ })
  const events = readEvents(await open(`${viewer.url}/api/events`))
  const delays = []
  for (let i = 0; i < REQUESTS; i++) {
    await (await fetch(`${viewer.match[1]}/users/${i}`)).text()
    const answeredAt = performance.now()
    for (let isSeen = false; !isSeen;) {
      const { value: { event, data } } = await events.next()
      isSeen = event === 'traces' && data.traces.some(({ path: seen, root }) => root && seen === `/users/${i}`)
    }
    delays.push(performance.now() - answeredAt)
  }
  await viewer.end()
  rmSync(cwd, { recursive: true })
  return { requests: REQUESTS, medianMs: median(delays), mostMs: Math.max(...delays) }
}

function open (url) {
  return new Promise((resolve, reject) => http.get(url, resolve).on('error', reject))
}

module.exports = { measureSeen, open }
