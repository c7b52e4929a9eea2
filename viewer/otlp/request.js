'use strict'

// Reads the body of POST /v1/traces, down to where each span's bytes begin and end. It copies no spans. The body of POST /v1/logs has the
// same shape, with log records in place of spans.
//
// ExportTraceServiceRequest { ResourceSpans resource_spans = 1 }
// ResourceSpans { Resource resource = 1; ScopeSpans scope_spans = 2; string schema_url = 3 }
// ScopeSpans { InstrumentationScope scope = 1; Span spans = 2; string schema_url = 3 }

const { ProtoReader } = require('./proto-reader')
const { BYTES } = require('./proto-reader')
const { SentResource } = require('./resource')

const NOTHING = Buffer.alloc(0)

/**
 * @param {Buffer} body
 * @param {(origin: { resource: SentResource, scope: Buffer, scopeSchemaUrl: string }, from: number, to: number) => void} onSpan
 *   `scope` is a part of `body`
 * @throws Malformed, possibly after some calls of `onSpan`
 */
function readRequest (body, onSpan) {
  const reader = new ProtoReader(body)
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readResourceSpans(reader.message(), onSpan)
  }
}

function readResourceSpans (reader, onSpan) {
  const { at, end } = reader
  let bytes = NOTHING
  let schemaUrl = ''
  // A sender may write the resource after the spans.
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) bytes = part(reader)
    else if (field === 3) schemaUrl = reader.text()
  }
  const resource = new SentResource(bytes, schemaUrl)
  reader.over(at, end)
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) readScopeSpans(reader.message(), resource, onSpan)
  }
}

function readScopeSpans (reader, resource, onSpan) {
  const { at, end } = reader
  const origin = { resource, scope: NOTHING, scopeSchemaUrl: '' }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) origin.scope = part(reader)
    else if (field === 3) origin.scopeSchemaUrl = reader.text()
  }
  reader.over(at, end)
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field !== 2) continue
    reader.expect(BYTES)
    onSpan(origin, reader.from, reader.to)
  }
}

function part (reader) {
  reader.expect(BYTES)
  return reader.bytes.subarray(reader.from, reader.to)
}

module.exports = { readRequest }
