'use strict'

// Fastify in a cluster of as many workers as cores. The figures are those of all its processes.

const cluster = require('node:cluster')
const path = require('node:path')
const { availableParallelism } = require('node:os')
const { ask } = require('../../run/ipc')

// worker: { setup, options } of each worker
module.exports = ({ worker }) => {
  const workers = []
  return {
    async start (config) {
      cluster.setupPrimary({ exec: path.join(__dirname, '../../server/main.js') })
      const ready = []
      for (let i = 0; i < availableParallelism(); i++) ready.push(startWorker({ ...config, ...worker }))
      const [first] = await Promise.all(ready)
      return { port: first.port, versions: { ...first.versions, workers: workers.length } }
    },
    async figures () {
      const all = await Promise.all(workers.map((child) => ask(child, 'begin')))
      const { user, system } = process.cpuUsage()
      return {
        cpuMicros: user + system + sum(all, ({ cpuMicros }) => cpuMicros),
        rssBytes: process.memoryUsage.rss() + sum(all, ({ rssBytes }) => rssBytes),
        counts: all[0].counts && addCounts(all.map(({ counts }) => counts))
      }
    },
    async flush (app, flushMs) {
      await Promise.all(workers.map((child) => ask(child, 'end', { flushMs })))
    }
  }

  function startWorker (config) {
    return new Promise((resolve, reject) => {
      const child = cluster.fork({ LIGHT_TRACE_BENCH: JSON.stringify(config) }).process
      child.title = `worker ${workers.push(child)}`
      child.on('message', (message) => { if (message.ready) resolve(message) })
      child.once('exit', () => reject(new Error('a worker exited')))
    })
  }
}

function addCounts (all) {
  const total = { ...all[0] }
  for (const key of Object.keys(total)) {
    if (typeof total[key] === 'number') total[key] = sum(all, (counts) => counts[key])
  }
  return total
}

function sum (all, pick) {
  return all.reduce((total, entry) => total + pick(entry), 0)
}
