'use strict'

// An app with one route, /go, that runs `work`. The tests are about the outbound calls of `work`.

const { tracedApp } = require('./traced-app')

/**
 * @param {object} t a tap test
 * @param {(request) => Promise<void>} work
 * @param {object} [options] of tracedApp
 * @returns {Promise<{ app, collector, origin, go (headers): Promise<object[]> }>} `go` calls the route and
 *   returns the CLIENT spans
 */
async function serving (t, work, options = {}) {
  const traced = await tracedApp(t, {
    ...options,
    routes: (app) => app.get('/go', async (request) => {
      await work(request)
      return 'ok'
    })
  })
  const go = async (headers = {}) => {
    const response = await fetch(`${traced.origin}/go`, { headers })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    return clients(await traced.collector.spans())
  }
  return { ...traced, go }
}

function clients (spans) {
  return spans.filter(({ kind }) => kind === 'CLIENT')
}

module.exports = { serving, clients }
