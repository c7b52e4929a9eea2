'use strict'

// @platformatic/kafka: one PRODUCER span for a send, whose context goes with each message as headers, and one
// CLIENT span for each message that arrives with such headers.
// https://opentelemetry.io/docs/specs/semconv/messaging/kafka/

const { kCall, KIND_PRODUCER, KIND_CLIENT, activeContext, tracerIn, firstTracer, isSuppressed } = require('../calls')
const { propagate } = require('../propagation')
const { parseTraceparent } = require('../../context/traceparent')
const { cleanTracestate } = require('../../context/tracestate')
const { SPAN_KEY } = require('../../context/keys')
const { EMPTY_CONTEXT } = require('../../context/suppressed')
const { NonRecordingSpan } = require('../../span/non-recording-span')
const { read, text, label, pushServer, pushText, lengthOf } = require('./read')

const HEADERS_MAX = 64

// ---- sending

const send = {
  kind: KIND_PRODUCER,
  shouldTrace: () => true,
  name (call) {
    const topic = topicOf(call)
    return topic === '' ? 'send' : `send ${topic}`
  },
  attributes (call) {
    const list = ['messaging.system', 'kafka', 'messaging.operation.name', 'send', 'messaging.operation.type', 'send']
    pushText(list, 'messaging.destination.name', topicOf(call))
    pushText(list, 'messaging.client.id', text(read(call, 'client'), 'clientId'))
    pushBroker(list, read(call, 'client'))
    const count = lengthOf(messagesOf(call))
    if (count > 1) list.push('messaging.batch.message_count', count)
    return list
  },
  started (span, call, tracer, context) {
    const Header = headerType(read(call, 'client'))
    const messages = messagesOf(call)
    if (Header === null || lengthOf(messages) === 0) return
    // The user's own messages stay as they are; copies of them go out.
    call[kMessages] = messages
    call.options.messages = Array.from(messages, (message) => withHeaders(message, Header, span, tracer, context))
  },
  ended (span, call) {
    if (call[kMessages] === undefined) return
    call.options.messages = call[kMessages]
    call[kMessages] = undefined
  }
}

const kMessages = Symbol('light-trace.messages')

function messagesOf (call) {
  return read(read(call, 'options'), 'messages')
}

/** The one topic of all messages, or ''. */
function topicOf (call) {
  const messages = messagesOf(call)
  const topic = lengthOf(messages) === 0 ? '' : text(messages[0], 'topic')
  return topic !== '' && messages.every((message) => text(message, 'topic') === topic) ? topic : ''
}

/** Which type a header of ours must have so that the producer's serialisers take it; null when none fits. */
function headerType (client) {
  const serializers = serializersOf(client)
  if (accepts(serializers, 'text', (value) => value)) return (value) => value
  if (accepts(serializers, 'text', Buffer.from)) return (value) => Buffer.from(value)
  return null
}

function accepts (serializers, probe, type) {
  return ['headerKey', 'headerValue'].every((name) => {
    try {
      const serialize = serializers?.[name] ?? ((data) => data)
      const bytes = serialize(type(probe))
      return Buffer.isBuffer(bytes) && bytes.toString() === probe
    } catch {
      return false
    }
  })
}

function serializersOf (client) {
  if (client === null || typeof client !== 'object') return undefined
  for (const symbol of Object.getOwnPropertySymbols(client)) {
    const serializers = read(read(client, symbol), 'serializers')
    if (serializers !== undefined) return serializers
  }
  return undefined
}

/** The broker, where there is one: which of several a message goes to the payload does not say. */
function pushBroker (list, client) {
  const brokers = ofSymbol(client, 'plt.kafka.base.bootstrapBrokers')
  if (lengthOf(brokers) !== 1) return
  pushServer(list, { serverAddress: read(brokers[0], 'host'), serverPort: read(brokers[0], 'port') })
}

function ofSymbol (object, description) {
  if (object === null || typeof object !== 'object') return undefined
  const symbol = Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description)
  return symbol === undefined ? undefined : read(object, symbol)
}

function withHeaders (message, type, span, tracer, context) {
  if (message === null || typeof message !== 'object') return message
  const given = read(message, 'headers')
  const headers = new Map(given instanceof Map ? given : Object.entries(given ?? {}))
  propagate(tracer, context, span, headers, {
    read: readHeader,
    write: (carrier, name, value) => carrier.set(type(name), type(value)),
    remove: removeHeader
  })
  return { ...message, headers }
}

function readHeader (headers, name) {
  let seen = 0
  for (const [key, value] of headers) {
    if (String(key) === name) return String(value)
    if (++seen === HEADERS_MAX) return undefined
  }
  return undefined
}

function removeHeader (headers, name) {
  for (const key of headers.keys()) if (String(key) === name) headers.delete(key)
}

// ---- receiving

const receive = {
  kind: KIND_CLIENT, // the conventions' kind for `receive`; CONSUMER is for `process`
  name: ({ message }) => {
    const topic = text(message, 'topic')
    return topic === '' ? 'receive' : `receive ${topic}`
  },
  attributes ({ message, client }) {
    const list = ['messaging.system', 'kafka', 'messaging.operation.name', 'receive', 'messaging.operation.type', 'receive']
    pushText(list, 'messaging.destination.name', text(message, 'topic'))
    pushText(list, 'messaging.destination.partition.id', label(message, 'partition'))
    pushText(list, 'messaging.consumer.group.name', text(client, 'groupId'))
    pushText(list, 'messaging.client.id', text(client, 'clientId'))
    pushBroker(list, client)
    const offset = Number(label(message, 'offset') || NaN)
    if (Number.isSafeInteger(offset)) list.push('messaging.kafka.offset', offset)
    return list
  }
}

/**
 * A message comes outside of any request: the span continues the sender's trace, and is linked to it. Under
 * an active span it is that one's child, and linked all the same.
 */
function onReceive (call) {
  const message = read(call, 'result')
  if (message === null || typeof message !== 'object' || call[kCall] !== undefined) return
  const sender = senderOf(read(read(call, 'raw'), 'headers') ?? read(message, 'headers'))
  let context = activeContext()
  let tracer = tracerIn(context)
  if (tracer === null) {
    if (sender === null || (context !== undefined && isSuppressed(context))) return
    tracer = firstTracer()
    context = EMPTY_CONTEXT.setValue(SPAN_KEY, sender)
  }
  if (!tracer?.outbound?.libraries || isSuppressed(context)) return
  call[kCall] = null
  const span = tracer.startCall(receive, { message, client: read(call, 'client') }, context)
  if (span === null) return
  if (sender !== null) span.addLink({ context: { ...sender.spanContext(), isRemote: true } })
  span.end()
}

/** The sender's span, from the headers as bytes or text; null without one. */
function senderOf (headers) {
  try {
    const entries = new Map()
    for (const [key, value] of headers) {
      if (entries.size === HEADERS_MAX) break
      entries.set(String(key), String(value))
    }
    const sender = new NonRecordingSpan()
    sender.p0 = sender.p1 = 0
    if (!parseTraceparent(entries.get('traceparent'), sender)) return null
    sender.s0 = sender.p0
    sender.s1 = sender.p1
    sender.remote = true
    sender.tracestate = cleanTracestate(entries.get('tracestate'))
    return sender
  } catch {
    return null
  }
}

module.exports = { KAFKA: { 'plt:kafka:producer:sends': send }, onReceive }
