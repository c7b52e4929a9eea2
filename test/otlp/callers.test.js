'use strict'

// Behind a proxy, each request of a connection has its own caller. Callers that occur again are copied from bytes. Each span must have its
// own caller, in any order and whichever memory the previous ones were written to.

const http = require('node:http')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { socketPath } = require('../support/socket-path')
const { randomFrom } = require('../support/random')

const REQUESTS = 400
const AGENTS = [undefined, 'curl/8.5.0', 'one', 'two', 'umlaut \xe4', 'z'.repeat(127), 'y'.repeat(600)]
const CLIENTS = [undefined, '203.0.113.7', '10.0.0.1', '203.0.113.7:4711', '0:0:0:0:0:ffff:10.1.2.3', '255.255.255.256', '2001:db8::17', '2001:0db8:0000:0000:0000:8a2e:0370:7334', 'unknown']
const HOSTS = ['shop.test', 'shop.test:8080', '[::1]:65535', 'h', `${'long.'.repeat(40)}test`, 'h:0', 'h:99999', 'a.test', 'b.test', 'c.test:127', 'd.test:128', 'e.test:16384']
const PROTOCOLS = [undefined, 'https', 'http', 'HTTPS', 'wss', 'gopher']

for (const [title, keepAlive, isUnix] of [['on two connections', true, false], ['with a connection each', false, false], ['over a unix socket', true, true]]) {
  test(`each span has its own caller ${title}`, async (t) => {
    const sink = await startSink(t)
    const listen = isUnix ? { path: socketPath(t) } : {}
    const { app, port } = await tracedApp(t, {
      listen,
      fastify: { trustProxy: true },
      trace: { spanProcessors: undefined, exporter: { url: sink.url }, headers: { request: ['x-n'] } },
      routes: (app) => app.get('/', async () => 'ok')
    })
    let connections = 0
    app.server.on('connection', () => { connections++ })
    const agents = [0, 1].map(() => new http.Agent({ keepAlive, maxSockets: 1 }))
    t.teardown(() => { for (const agent of agents) agent.destroy() })
    const random = randomFrom(3)
    const one = (list) => list[Math.floor(random() * random() * list.length)] // the first ones occur more often
    const other = (n) => ({ agent: random() < 0.1 ? `never again ${n}` : one(AGENTS), client: random() < 0.1 ? `10.9.8.${n % 250}` : one(CLIENTS), host: one(HOSTS), protocol: one(PROTOCOLS) })
    const expected = []
    let both = [other(0), other(1)]
    for (let n = 0; n < REQUESTS; n += 2) {
      both = both.map((before, i) => random() < 0.7 ? before : random() < 0.5 ? { ...other(n + i), host: before.host, protocol: before.protocol } : other(n + i))
      const ports = await Promise.all(both.map((caller, i) => ask(agents[i], isUnix ? { socketPath: listen.path } : { host: '127.0.0.1', port }, caller, n + i)))
      both.forEach((caller, i) => expected.push(attributesOf(caller, ports[i])))
      if (n % 20 === 0) await app.lightTrace.flush()
    }
    while (app.lightTrace.stats().spans.accepted < REQUESTS) await new Promise(setImmediate) // a Windows pipe completes a write only when the other side has read it
    await app.lightTrace.flush()
    const spans = sink.spans.toSorted((a, b) => numberOf(a) - numberOf(b))
    t.equal(spans.length, REQUESTS)
    t.equal(connections, keepAlive ? 2 : REQUESTS) // the system may give two of them the same port
    t.strictSame(spans.map(callerOf), expected)
  })
}

function numberOf ({ attributes }) {
  return Number(attributes['http.request.header.x-n'][0])
}

function callerOf ({ attributes }) {
  const names = ['client.address', 'network.peer.address', 'network.peer.port', 'server.address', 'server.port', 'url.scheme', 'user_agent.original']
  return Object.fromEntries(names.filter((name) => name in attributes).map((name) => [name, attributes[name]]))
}

function attributesOf ({ agent, client, host, protocol = 'http' }, port) {
  const [, name, named] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(host)
  const scheme = protocol === 'gopher' ? 'http' : protocol.toLowerCase()
  const serverPort = named === undefined ? { http: 80, https: 443 }[scheme] : named > 0 && named < 65536 ? Number(named) : undefined
  const isUnknown = client === undefined || client === 'unknown' || client.endsWith('.256')
  return {
    ...isUnknown ? port !== undefined && { 'client.address': '127.0.0.1' } : { 'client.address': client.replace(':4711', '') },
    ...port !== undefined && { 'network.peer.address': '127.0.0.1', 'network.peer.port': port },
    'server.address': name,
    ...serverPort !== undefined && { 'server.port': serverPort },
    'url.scheme': scheme,
    ...agent !== undefined && { 'user_agent.original': agent.slice(0, 512) }
  }
}

/** Resolves to the port from which the request was sent, if it has one. */
function ask (agent, where, { agent: userAgent, client, host, protocol }, n) {
  return new Promise((resolve, reject) => {
    const headers = {
      host,
      'x-n': String(n),
      ...userAgent !== undefined && { 'user-agent': userAgent },
      ...client !== undefined && { 'x-forwarded-for': client },
      ...protocol !== undefined && { 'x-forwarded-proto': protocol }
    }
    const request = http.get({ ...where, agent, headers }, (response) => {
      const { localPort } = request.socket
      response.resume().on('end', () => resolve(localPort))
    }).on('error', reject)
  })
}
