'use strict'

// The call descriptors of libraries that publish diagnostics channels. Those of databases are in databases.js.

const { EMPTY_CONTEXT } = require('../../context/request-context.js')
const { SPAN_KEY } = require('../../context/trace-context.js')
const { processState } = require('../../runtime/process-state.js')
const { attempt } = require('../../runtime/report.js')
const { cut } = require('../../span/attributes.js')
const { remoteSpanOf } = require('../../span/child-span.js')
const { STATUS_ERROR } = require('../../span/recording-span.js')
const { kCall, KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, activeContext, tracerIn, isSuppressed } = require('../../outbound/calls.js')
const { propagate } = require('../../outbound/client-span.js')
const { DATABASES, recordSqliteQuery } = require('./databases.js')
const { sanitise, DIALECTS } = require('./statement.js')
const { read, text, label, numberOf, pushServer, pushText, lengthOf } = require('./read.js')

// graphql 17: one span for the execution of an operation. Stages and resolvers get spans only if an app names their channels.
// https://opentelemetry.io/docs/specs/semconv/graphql/graphql-spans/

const LABEL_MAX = 128
const OPERATION_TYPES = new Set(['query', 'mutation', 'subscription'])

const execute = {
  kind: KIND_SERVER,
  // Without the operation's name, because clients choose it.
  name: (call) => operationType(call) || 'GraphQL Operation',
  attributes (call) {
    const list = []
    pushText(list, 'graphql.operation.type', operationType(call))
    pushText(list, 'graphql.operation.name', cut(text(call, 'operationName'), LABEL_MAX))
    return list
  },
  /** Errors of resolvers are in the result. */
  result (span, call) {
    const errors = read(read(call, 'result'), 'errors')
    if (lengthOf(errors) === 0) return
    const [error] = errors
    span.setAttribute('error.type', text(read(error, 'extensions'), 'code') || text(error, 'name') || 'GraphQLError')
    span.setStatus({ code: STATUS_ERROR })
  }
}

/** With `outbound.graphqlDocuments`: the document's values are removed, but its names still come from the client. */
const executeWithDocument = {
  ...execute,
  attributes (call) {
    const list = execute.attributes(call)
    const source = text(read(read(read(call, 'document'), 'loc'), 'source'), 'body')
    pushText(list, 'graphql.document', source === '' ? '' : sanitise(source, DIALECTS.graphql).text)
    return list
  }
}

const stage = (name) => ({ kind: KIND_INTERNAL, name: () => `graphql ${name}`, attributes: () => [] })

const resolve = {
  kind: KIND_INTERNAL,
  name: (call) => `resolve ${text(call, 'parentType') || 'field'}.${text(call, 'fieldName')}`,
  attributes (call) {
    const list = []
    pushText(list, 'light_trace.graphql.field.name', text(call, 'fieldName'))
    pushText(list, 'light_trace.graphql.field.path', text(call, 'fieldPath'))
    pushText(list, 'light_trace.graphql.field.type', text(call, 'fieldType'))
    return list
  }
}

function operationType (call) {
  const type = text(call, 'operationType')
  return OPERATION_TYPES.has(type) ? type : ''
}

const GRAPHQL = {
  'graphql:execute': execute,
  // Subscribed to only if `outbound.channels` names them:
  'graphql:parse': stage('parse'),
  'graphql:validate': stage('validate'),
  'graphql:subscribe': execute,
  'graphql:resolve': resolve
}
const WITH_DOCUMENTS = { 'graphql:execute': executeWithDocument, 'graphql:subscribe': executeWithDocument }

// @platformatic/kafka: a PRODUCER span for a send, whose context is added to each message, and a CLIENT span for each received message.
// https://opentelemetry.io/docs/specs/semconv/messaging/kafka/

const HEADERS_MAX = 64

const kMessages = Symbol('light-trace.messages')

const send = {
  kind: KIND_PRODUCER,
  name: (call) => nameOf('send', topicOf(call)),
  attributes (call) {
    const list = attributesOf('send', topicOf(call), read(call, 'client'))
    const count = lengthOf(messagesOf(call))
    if (count > 1) list.push('messaging.batch.message_count', count)
    return list
  },
  started (span, call, tracer, context) {
    const type = headerType(read(call, 'client'))
    const messages = messagesOf(call)
    if (type === null || lengthOf(messages) === 0) return
    // Copies of the messages are sent; the user's own are not changed.
    tracer.report.attempt('LT_WARN_PROPAGATOR', 'trace headers could not be added to messages', () => { // throws if the options are frozen
      call.options.messages = Array.from(messages, (message) => withHeaders(message, type, span, tracer, context))
      call[kMessages] = messages
    })
  },
  ended (span, call) {
    if (call[kMessages] === undefined) return
    call.options.messages = call[kMessages]
    call[kMessages] = undefined
  }
}

function messagesOf (call) {
  return read(read(call, 'options'), 'messages')
}

/** The topic of all messages, or '' if it is not the same. */
function topicOf (call) {
  const messages = messagesOf(call)
  const topic = lengthOf(messages) === 0 ? '' : text(messages[0], 'topic')
  return topic !== '' && messages.every((message) => text(message, 'topic') === topic) ? topic : ''
}

/** Converts a header to the type that the producer's serialisers accept: string or Buffer. Null if neither works. */
function headerType (client) {
  const serializers = read(underSymbol(client, (symbol, value) => read(value, 'serializers') !== undefined), 'serializers')
  const asText = (value) => value
  return [asText, Buffer.from].find((type) => [serializers?.headerKey ?? asText, serializers?.headerValue ?? asText].every((serialize) => attempt(() => {
    const bytes = serialize(type('text'))
    return Buffer.isBuffer(bytes) && bytes.toString() === 'text'
  }) === true)) ?? null
}

/** Returns the value of the client's first symbol for which `isWanted` is true. */
function underSymbol (client, isWanted) {
  if (client === null || typeof client !== 'object') return undefined
  return read(client, Object.getOwnPropertySymbols(client).find((symbol) => isWanted(symbol, read(client, symbol))))
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

/** If several headers have the same name, the last one counts, as in other Kafka clients. */
function readHeader (headers, name) {
  let found
  let seen = 0
  for (const [key, value] of headers) {
    if (String(key) === name) found = String(value)
    if (++seen === HEADERS_MAX) break
  }
  return found
}

function removeHeader (headers, name) {
  for (const key of headers.keys()) if (String(key) === name) headers.delete(key)
}

const receive = {
  kind: KIND_CLIENT, // the conventions' kind for `receive`; CONSUMER is for `process`
  name: ({ message }) => nameOf('receive', text(message, 'topic')),
  attributes ({ message, client }) {
    const list = attributesOf('receive', text(message, 'topic'), client)
    pushText(list, 'messaging.destination.partition.id', label(message, 'partition'))
    pushText(list, 'messaging.consumer.group.name', text(client, 'groupId'))
    const offset = numberOf(message, 'offset')
    if (Number.isSafeInteger(offset)) list.push('messaging.kafka.offset', offset)
    return list
  }
}

function nameOf (operation, topic) {
  return topic === '' ? operation : `${operation} ${topic}`
}

function attributesOf (operation, topic, client) {
  const list = ['messaging.system', 'kafka', 'messaging.operation.name', operation, 'messaging.operation.type', operation]
  pushText(list, 'messaging.destination.name', topic)
  pushText(list, 'messaging.client.id', text(client, 'clientId'))
  // With several brokers, the payload does not tell which one gets the message.
  const brokers = underSymbol(client, ({ description }) => description === 'plt.kafka.base.bootstrapBrokers')
  if (lengthOf(brokers) === 1) pushServer(list, { serverAddress: read(brokers[0], 'host'), serverPort: read(brokers[0], 'port') })
  return list
}

/** Records a received message as a child of the active span, or else of the sender's span, with a link to the sender's span. */
function recordKafkaMessage (call) {
  const message = read(call, 'result')
  if (message === null || typeof message !== 'object' || call[kCall] !== undefined) return
  const sender = senderOf(read(read(call, 'raw'), 'headers') ?? read(message, 'headers'))
  let context = activeContext()
  let tracer = tracerIn(context)
  if (tracer === null) {
    if (sender === null || (context !== undefined && isSuppressed(context))) return
    tracer = processState.openApps.first()
    context = EMPTY_CONTEXT.setValue(SPAN_KEY, sender)
  }
  if (!tracer?.outbound?.libraries || isSuppressed(context)) return
  call[kCall] = null
  const span = tracer.startCall(receive, { message, client: read(call, 'client') }, context)
  if (span === null) return
  if (sender !== null) span.addLink({ context: sender.spanContext() })
  span.end()
}

/** The sender's span, from headers that are Buffers or strings; null if there is none. */
function senderOf (headers) {
  return attempt(() => remoteSpanOf({ traceparent: readHeader(headers, 'traceparent'), tracestate: readHeader(headers, 'tracestate') })) ?? null
}

module.exports = { CALL_DESCRIPTORS: { ...DATABASES, ...GRAPHQL, 'plt:kafka:producer:sends': send }, WITH_DOCUMENTS, recordKafkaMessage, recordSqliteQuery }
