'use strict'

const { test } = require('tap')
const { Environment } = require('../../lib/config/env')
const { readEntities, entityAttributes, entityRefs } = require('../../lib/config/entities')

function read (text) {
  const env = new Environment({ OTEL_ENTITIES: text })
  return { attributes: { ...entityAttributes(readEntities(env)) }, warnings: env.warnings.map(({ code }) => code) }
}

test('identifying and descriptive attributes of all entities', async (t) => {
  t.same(read('service{service.name=shop,service.instance.id=1}[service.version=1.0]@https://opentelemetry.io/schemas/1.44.0;host{host.id=h1}'), {
    attributes: { 'service.name': 'shop', 'service.instance.id': '1', 'service.version': '1.0', 'host.id': 'h1' }, warnings: []
  })
})

test('values are percent-decoded, blanks around them go', async (t) => {
  t.same(read(' service { a = b } '), { attributes: {}, warnings: ['LT_WARN_ENV'] })
  t.same(read(' service{ a = x%3By%7Bz%7D%2C%3D } ; ;'), { attributes: { a: 'x;y{z},=' }, warnings: [] })
  t.same(read('service{a=}'), { attributes: { a: '' }, warnings: [] })
})

test('a broken entity is ignored with a warning, the others hold', async (t) => {
  for (const broken of ['service', 'service{}', '{a=1}', '1service{a=1}', 'service{a}', 'service{=1}', 'service{a=%zz}', 'service{a=1}[b', 'service{a=1}[b]', 'service{a=1}x', 'se rvice{a=1}']) {
    t.same(read(`${broken};host{host.id=h1}`), { attributes: { 'host.id': 'h1' }, warnings: ['LT_WARN_ENV'] }, broken)
  }
})

test('of one type the last counts, whole', async (t) => {
  t.same(read('service{a=1}[b=1];service{a=2}').attributes, { a: '2' })
})

test('names are names, and what is too long is not read', async (t) => {
  t.same(Object.keys(read('x{__proto__=1,constructor=2}').attributes), ['__proto__', 'constructor'])
  t.same(read(`x{a=${'b'.repeat(70000)}}`), { attributes: {}, warnings: ['LT_WARN_ENV'] })
  t.same(read(undefined), { attributes: {}, warnings: [] })
  for (const part of ['{', '[', ';', '@', 'a{a=1}[', 'a{']) t.same(read(part.repeat(65536 / part.length)).attributes, {}, part)
})

test('a resource refers to the entities whose attributes it has', async (t) => {
  const text = 'service{service.name=shop}[service.version=1,team=a]@https://opentelemetry.io/schemas/1.44.0;host{host.id=h1}'
  const entities = readEntities(new Environment({ OTEL_ENTITIES: text }))
  const service = { schemaUrl: 'https://opentelemetry.io/schemas/1.44.0', type: 'service', idKeys: ['service.name'], descriptionKeys: ['service.version', 'team'] }
  const host = { schemaUrl: '', type: 'host', idKeys: ['host.id'], descriptionKeys: [] }
  const attributes = entityAttributes(entities)
  t.same(entityRefs(entities, attributes), [service, host])
  t.same(entityRefs(entities, { ...attributes, 'service.version': '2' }), [{ ...service, descriptionKeys: ['team'] }, host], 'a stronger source says another version')
  t.same(entityRefs(entities, { ...attributes, 'host.id': 'h2' }), [service], 'another host')
})
