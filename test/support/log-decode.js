'use strict'

// Reads an OTLP ExportLogsServiceRequest with the decoder that protobufjs generated from OpenTelemetry's .proto files, as strictly as
// otlp-decode.js reads spans.

const { gunzipSync } = require('node:zlib')
const { opentelemetry: { proto } } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { strictReader, boundMessages, attributesOf, valueOf, bigint, id, GZIP_MAGIC } = require('./otlp-decode')

const Request = proto.collector.logs.v1.ExportLogsServiceRequest
const { ResourceLogs, ScopeLogs, LogRecord } = proto.logs.v1

boundMessages([ResourceLogs, ScopeLogs, LogRecord, Request])

/** @returns {object[]} the records in order, flat. Times are BigInt nanoseconds, ids are '' without a trace */
function decodeLogs (body) {
  const request = Request.decode(strictReader(body[0] === GZIP_MAGIC ? gunzipSync(body) : body))
  return request.resourceLogs.flatMap(({ resource, scopeLogs }) => scopeLogs.flatMap(({ scope, logRecords }) => logRecords.map((record) => ({
    resource: attributesOf(resource?.attributes),
    scope: scope?.name ?? '',
    scopeVersion: scope?.version ?? '',
    time: bigint(record.timeUnixNano),
    observedTime: bigint(record.observedTimeUnixNano),
    severityNumber: record.severityNumber,
    severityText: record.severityText ?? '',
    eventName: record.eventName ?? '',
    body: record.body === null ? undefined : valueOf(record.body),
    attributes: attributesOf(record.attributes),
    droppedAttributesCount: record.droppedAttributesCount ?? 0,
    flags: record.flags ?? 0,
    traceId: record.traceId?.length ? id(record.traceId, 16, 'trace_id') : '',
    spanId: record.spanId?.length ? id(record.spanId, 8, 'span_id') : ''
  }))))
}

module.exports = { decodeLogs }
