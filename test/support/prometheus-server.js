'use strict'

// Starts a Prometheus server for a test, and queries it.

const { writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { setTimeout: pause } = require('node:timers/promises')
const { start } = require('../../scripts/run')
const { freePort } = require('../../scripts/free-port')

const DEADLINE_MS = 60_000

/**
 * @param {string} binary
 * @param {{ config: string, flags?: string[] }} options config: its YAML file
 */
async function startPrometheus (t, binary, { config, flags = [] }) {
  const directory = t.testdir({})
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  writeFileSync(join(directory, 'prometheus.yml'), config)
  const server = start(binary, [
    `--config.file=${join(directory, 'prometheus.yml')}`, `--storage.tsdb.path=${join(directory, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error', ...flags
  ])
  t.teardown(() => server.stop())
  const ask = async (path, parameters) => {
    const response = await fetch(`${origin}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, data, error } = await response.json()
    if (status !== 'success') throw new Error(error)
    return data
  }
  /** Repeats the query until it has a result, since a scrape takes time. */
  const until = async (read) => {
    for (let deadline = Date.now() + DEADLINE_MS; ; await pause(100)) {
      const answer = await read().catch(() => undefined)
      if (answer) return answer
      if (Date.now() > deadline) throw new Error(`Prometheus has no answer\n${server.output()}`)
    }
  }
  return {
    origin,
    ready: () => until(async () => (await fetch(`${origin}/-/ready`)).ok),
    query: (query, isGood = () => true) => until(async () => {
      const { result } = await ask('query', { query })
      return result.length > 0 && isGood(result) ? result : undefined
    }),
    exemplars: (query) => until(async () => {
      const now = Date.now() / 1000
      const found = await ask('query_exemplars', { query, start: now - 600, end: now + 600 })
      return found.length > 0 ? found : undefined
    }),
    targets: () => ask('targets', {})
  }
}

module.exports = { startPrometheus }
