'use strict'

// Who calls whom in one trace: the calls between services, and those to databases, hosts and message queues.
//
//   clients → SERVER                       its caller sent no span
//   CLIENT → SERVER of its child           one call between the services, not one to a host as well
//   CLIENT → database, host or queue       by its attributes
//   PRODUCER → queue → CONSUMER
//
// A CLIENT span inside another one of the same service is how that call is sent, for example the HTTP request of a database client. It does
// not count again.

const { readSomeAttributes } = require('../otlp/attributes')
const { KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER, STATUS_ERROR } = require('../otlp/names')

const NAME_MAX = 200
const NESTED_MAX = 16

const DB_SYSTEM = ['db.system.name', 'db.system']
const DB_NAMESPACE = ['db.namespace', 'db.name']
const QUEUE_SYSTEM = ['messaging.system']
const QUEUE_NAME = ['messaging.destination.name', 'messaging.destination']
const QUEUE_OPERATION = ['messaging.operation.type', 'messaging.operation']
const RPC_SYSTEM = ['rpc.system.name', 'rpc.system']
const METHOD = ['http.request.method', 'http.method']
const ADDRESS = ['server.address', 'net.peer.name', 'peer.service']
const PORT = ['server.port', 'net.peer.port']
const URL_FULL = ['url.full', 'http.url']
const KEYS = new Set([DB_SYSTEM, DB_NAMESPACE, QUEUE_SYSTEM, QUEUE_NAME, QUEUE_OPERATION, RPC_SYSTEM, METHOD, ADDRESS, PORT, URL_FULL].flat())

const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/(?:[^@/?#]*@)?([^/?#]+)/i
const USUAL_PORT = /:(?:80|443)$/

const CLIENTS = { id: 'client', kind: 'client', name: 'clients', system: '', facts: [] }

/**
 * Stops after each span, because a span may have many attributes.
 * @param {import('../store/trace').Trace} trace
 * @returns {Generator<void, { from: object, to: object, span: object, failed: boolean }[]>} `from`, `to`: { id, kind, name, system, facts },
 *   where `facts` are the attributes that make them, as conditions; `span`: the one whose duration is that of the call
 */
function * callsOf (trace) {
  const calls = []
  const answers = new Map() // CLIENT span → the SERVER spans below it
  const targetOf = targets()
  const add = (from, to, span, failed = span.status === STATUS_ERROR) => calls.push({ from, to, span, failed })
  for (let i = 0; i < trace.spans.length; i++) {
    const span = trace.spans[i]
    if (span.kind === KIND_SERVER) arrived(trace, span, answers, add)
    else if (span.kind === KIND_CONSUMER) consumed(trace, span, targetOf, add)
    yield
  }
  for (let i = 0; i < trace.spans.length; i++) {
    const span = trace.spans[i]
    if (isCall(span)) called(trace, span, answers, targetOf, add)
    yield
  }
  return calls
}

function arrived (trace, span, answers, add) {
  const parent = parentOf(trace, span)
  if (parent === undefined) add(CLIENTS, serviceOf(span), span)
  else if (parent.kind === KIND_CLIENT) {
    const outer = outermost(trace, parent)
    const known = answers.get(outer)
    if (known === undefined) answers.set(outer, [span])
    else known.push(span)
  } else if (isForeign(parent, span)) add(serviceOf(parent), serviceOf(span), span)
}

function consumed (trace, span, targetOf, add) {
  const parent = parentOf(trace, span)
  const queue = queueOf(textsOf(span)) ?? (parent !== undefined && isCall(parent) ? queueIn(targetOf(parent)) : null)
  if (queue !== null) add(queue, serviceOf(span), span)
  else if (parent === undefined) add(CLIENTS, serviceOf(span), span)
  else if (isForeign(parent, span)) add(serviceOf(parent), serviceOf(span), span)
}

function called (trace, span, answers, targetOf, add) {
  const outer = outermost(trace, span)
  if (outer !== span && (answers.has(outer) || targetOf(outer) !== null)) return
  const servers = answers.get(span)
  const from = serviceOf(span)
  if (servers !== undefined) {
    for (const service of new Set(servers.map(({ origin }) => origin.service))) {
      const failed = servers.some((server) => server.origin.service === service && server.status === STATUS_ERROR)
      add(from, serviceNamed(service), span, failed || span.status === STATUS_ERROR)
    }
    return
  }
  const target = targetOf(span)
  if (target === null) return
  if (target.received) add(target.peer, from, span)
  else add(from, target.peer, span)
}

function isCall ({ kind }) {
  return kind === KIND_CLIENT || kind === KIND_PRODUCER
}

function isForeign (a, b) {
  return a.origin.service !== b.origin.service
}

function parentOf (trace, { id, parent }) {
  return parent === '' || parent === id ? undefined : trace.find(parent)
}

// A call that started when the outer one had ended is a call of its own: some tracers continue the trace in the callback of a call.
function outermost (trace, span) {
  let outer = span
  for (let level = 0; level < NESTED_MAX; level++) {
    const parent = parentOf(trace, outer)
    if (parent === undefined || !isCall(parent) || isForeign(parent, span) || outer.startMs > parent.startMs + parent.durationMs) break
    outer = parent
  }
  return outer
}

function serviceOf ({ origin }) {
  return serviceNamed(origin.service)
}

function serviceNamed (name) {
  return { id: `service:${name}`, kind: 'service', name, system: '', facts: name === '' ? [] : [{ key: 'service.name', op: '=', value: name }] }
}

/** Reads each span once, because many calls may be inside it. */
function targets () {
  const known = new Map()
  return (span) => {
    let target = known.get(span)
    if (target === undefined) known.set(span, target = readTarget(span))
    return target
  }
}

function queueIn (target) {
  return target?.peer.kind === 'messaging' ? target.peer : null
}

/** The database, queue or host that a call goes to, or null if its span does not name it. */
function readTarget (span) {
  const texts = textsOf(span)
  const queue = queueOf(texts)
  if (queue !== null) return { peer: queue, received: span.kind === KIND_CLIENT && texts(QUEUE_OPERATION).value === 'receive' }
  const peer = databaseOf(texts) ?? hostOf(texts)
  return peer === null ? null : { peer, received: false }
}

function queueOf (texts) {
  const system = texts(QUEUE_SYSTEM)
  return system === NONE ? null : peerOf('messaging', system.value, texts(QUEUE_NAME).value, [system, texts(QUEUE_NAME)])
}

function databaseOf (texts) {
  const system = texts(DB_SYSTEM)
  if (system === NONE) return null
  const [address, port, namespace] = [texts(ADDRESS), texts(PORT), texts(DB_NAMESPACE)]
  const name = [withPort(address.value, port.value), namespace.value].filter((part) => part !== '').join('/')
  return peerOf('db', system.value, name, [system, address, address === NONE ? NONE : port, namespace])
}

function hostOf (texts) {
  const [address, port, url, rpc] = [texts(ADDRESS), texts(PORT), texts(URL_FULL), texts(RPC_SYSTEM)]
  const authority = AUTHORITY.exec(url.value)?.[1] ?? ''
  const name = address === NONE ? authority : withPort(address.value, port.value)
  if (name === '') return null
  const system = rpc === NONE ? (url === NONE && texts(METHOD) === NONE ? '' : 'http') : rpc.value
  const peer = peerOf('host', system, name.replace(USUAL_PORT, ''), [address, address === NONE ? NONE : port])
  return address === NONE ? { ...peer, facts: [{ key: url.key, op: '~', value: authority }] } : peer
}

function withPort (address, port) {
  if (address === '' || port === '') return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

function peerOf (kind, system, name, facts) {
  return { id: `${kind}:${system} ${name}`, kind, name: cut(name || system), system, facts: facts.filter((fact) => fact !== NONE) }
}

const NONE = { key: '', op: '', value: '' }

/** @returns {(keys: string[]) => { key: string, value: string }} the first of these attributes that the span has */
function textsOf (span) {
  const attributes = readSomeAttributes(span, KEYS)
  return (keys) => {
    for (const key of keys) {
      const value = attributes.get(key)
      if ((typeof value === 'string' && value !== '') || typeof value === 'number') return { key, op: '=', value: cut(String(value)) }
    }
    return NONE
  }
}

// A copy, because a slice would keep the whole text in memory.
function cut (text) {
  return text.length > NAME_MAX ? Buffer.from(text.slice(0, NAME_MAX)).toString() : text
}

module.exports = { callsOf, serviceNamed }
