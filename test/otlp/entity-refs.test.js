'use strict'

// Which entities a resource refers to, read back by the decoder that protobufjs made of OpenTelemetry's .proto files.

const { test } = require('tap')
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root')
const { resolveOptions } = require('../../lib/config/options')
const { ExportRequestPrefix } = require('../../lib/otlp/export-request-prefix')
const { requestJson } = require('../../lib/otlp/span-json')

const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest

const resourceFor = (environment) => resolveOptions({}, environment).resource
const fromBytes = (resource) => Request.toObject(Request.decode(new ExportRequestPrefix(resource).head(0))).resourceSpans[0].resource
const fromJson = (resource) => Request.toObject(Request.fromObject(JSON.parse(requestJson(resource, [])))).resourceSpans[0].resource

test('bytes and lines refer to the entities of OTEL_ENTITIES', async (t) => {
  const resource = resourceFor({
    OTEL_ENTITIES: 'service{service.name=shop,service.instance.id=1}[service.version=2,team=a]@https://opentelemetry.io/schemas/1.44.0;host{host.id=h1};k8s.pod{k8s.pod.uid=u}',
    OTEL_RESOURCE_ATTRIBUTES: 'service.version=3,host.id=h2'
  })
  const expected = [
    { schemaUrl: 'https://opentelemetry.io/schemas/1.44.0', type: 'service', idKeys: ['service.name', 'service.instance.id'], descriptionKeys: ['team'] },
    { type: 'k8s.pod', idKeys: ['k8s.pod.uid'] }
  ]
  for (const { attributes, entityRefs } of [fromBytes(resource), fromJson(resource)]) {
    t.same(entityRefs, expected, 'none whose attributes a stronger source has replaced')
    const keys = attributes.map(({ key }) => key)
    t.ok(expected.every(({ idKeys, descriptionKeys = [] }) => [...idKeys, ...descriptionKeys].every((key) => keys.includes(key))), 'each key is an attribute of the resource')
  }
})

test('without OTEL_ENTITIES there is nothing of them', async (t) => {
  const resource = resourceFor({ OTEL_RESOURCE_ATTRIBUTES: 'host.id=h2' })
  for (const read of [fromBytes(resource), fromJson(resource)]) t.notOk('entityRefs' in read)
})
