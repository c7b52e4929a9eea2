'use strict'

// The tables of the libraries that publish channels themselves: which channel means what. Those of databases and Kafka have files of
// their own.

const { KIND_INTERNAL, KIND_SERVER } = require('../calls')
const { cut } = require('../../span/attributes')
const { STATUS_ERROR } = require('../../span/recording-span')
const { DATABASES, recordSqliteQuery } = require('./databases')
const { KAFKA, recordKafkaMessage } = require('./kafka')
const { sanitise, DIALECTS } = require('./statement')
const { read, text, pushText, lengthOf } = require('./read')

// graphql 17: one span for the execution of an operation; those of stages and resolvers for apps that name their channels.
// https://opentelemetry.io/docs/specs/semconv/graphql/graphql-spans/

const LABEL_MAX = 128
const OPERATION_TYPES = new Set(['query', 'mutation', 'subscription'])

const execute = {
  kind: KIND_SERVER,
  // Not with the operation's name: callers make it up.
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

/** With `outbound.graphqlDocuments`: the document's values are removed, its names are the caller's still. */
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
  // Listened to when `outbound.channels` names them:
  'graphql:parse': stage('parse'),
  'graphql:validate': stage('validate'),
  'graphql:subscribe': execute,
  'graphql:resolve': resolve
}
const WITH_DOCUMENTS = { 'graphql:execute': executeWithDocument, 'graphql:subscribe': executeWithDocument }

module.exports = { CALL_DESCRIPTORS: { ...DATABASES, ...GRAPHQL, ...KAFKA }, WITH_DOCUMENTS, recordKafkaMessage, recordSqliteQuery }
