'use strict'

// The port where every exporter sends by default; where it is taken, by whom, and the next one.

const http = require('node:http')

const DEFAULT_PORT = 4318
const TRIES_MAX = 20
const ASK_TIMEOUT_MS = 500

/**
 * @param {() => import('../http/server').Viewer} make
 * @returns {Promise<{ viewer?: import('../http/server').Viewer, port: number, joined?: number }>} joined: the process of another one that has
 *   the port
 * @throws what listen says, where no port helps
 */
async function listenFrom (make, { port: wanted = DEFAULT_PORT, host }, say, mayJoin = false) {
  for (let port = wanted, tries = 1; ; port++, tries++) {
    const viewer = make()
    try {
      const taken = await viewer.listen(port, host)
      if (port !== wanted) say(`port ${wanted} is taken by ${await holderOf(wanted, host)}: this viewer is on ${taken}, and does not see what is sent to ${wanted}`)
      return { viewer, port: taken }
    } catch (error) {
      const joined = mayJoin && error.code === 'EADDRINUSE' && port === wanted ? await viewerOn(port) : undefined
      if (joined !== undefined) return { port, joined }
      if (error.code !== 'EADDRINUSE' || tries === TRIES_MAX || port === 65_535) throw explained(error, port, host)
    }
  }
}

function explained (error, port, host) {
  const reasons = {
    EADDRINUSE: `ports up to ${port} are taken: choose another with --port`,
    EACCES: `port ${port} may not be listened on: choose one above 1023 with --port`,
    EADDRNOTAVAIL: `${host} is no address of this machine`,
    ENOTFOUND: `${host} is no address of this machine`
  }
  return Object.assign(new Error(reasons[error.code] ?? error.message), { expected: reasons[error.code] !== undefined })
}

/** @returns {Promise<number | undefined>} the process of a viewer that listens there */
async function viewerOn (port, host = '127.0.0.1') {
  const answer = answerOf(await ask({ port, host, path: '/api/whoami' }))
  return answer?.name === 'light-trace' ? Number(answer.pid) : undefined
}

async function holderOf (port, host = '127.0.0.1') {
  const viewer = await viewerOn(port, host)
  if (viewer !== undefined) return `another light-trace (process ${viewer})`
  const otlp = await ask({ port, host, path: '/v1/traces', method: 'POST', headers: { 'content-type': 'application/x-protobuf' } })
  return otlp?.status === 200 ? 'an OTLP receiver, such as a collector' : 'something that is no OTLP receiver'
}

function answerOf (answer) {
  try {
    return JSON.parse(answer.text)
  } catch {
    return undefined
  }
}

function ask (options) {
  return new Promise((resolve) => {
    const request = http.request({ ...options, timeout: ASK_TIMEOUT_MS, agent: false }, (response) => {
      let text = ''
      response.setEncoding('latin1').on('data', (piece) => { if (text.length < 10_000) text += piece })
      response.on('end', () => resolve({ status: response.statusCode, text })).on('error', () => resolve(undefined))
    })
    request.on('error', () => resolve(undefined)).on('timeout', () => request.destroy()).end()
  })
}

module.exports = { listenFrom, DEFAULT_PORT }
