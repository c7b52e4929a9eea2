'use strict'

// The tables of the libraries that publish channels themselves: which channel means what.

const { DATABASES, recordSqliteQuery } = require('./databases')
const { GRAPHQL, WITH_DOCUMENTS } = require('./graphql')
const { KAFKA, recordKafkaMessage } = require('./kafka')

const CALL_DESCRIPTORS = { ...DATABASES, ...GRAPHQL, ...KAFKA }

module.exports = { CALL_DESCRIPTORS, WITH_DOCUMENTS, recordKafkaMessage, recordSqliteQuery }
