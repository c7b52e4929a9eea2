'use strict'

// OTEL_ENTITIES: what an operator or orchestrator says of the things that this process belongs to.
//
//   service{service.name=shop,service.instance.id=1}[service.version=1.0]@https://…;host{host.id=h1}
//   type   identifying attributes                  descriptive             schema   next
//
// https://opentelemetry.io/docs/specs/otel/entities/entity-propagation/

const NAME = 'OTEL_ENTITIES'
const LENGTH_MAX = 65536
const ENTITIES_MAX = 128

// Reserved characters in a value are percent-encoded, so none of these parts can hold the brackets of another.
const ENTITY = /^([a-zA-Z][a-zA-Z0-9._-]*)\{([^{}]*)\}(?:\[([^[\]]*)\])?(?:@(\S*))?$/

module.exports = { readEntities, entityAttributes, entityRefs }

/**
 * All entities that can be read; a broken one is ignored with a warning, and of one type the last counts.
 * @returns {{ type: string, schemaUrl: string, identifying: object, descriptive: object }[]}
 */
function readEntities (env) {
  const text = env.text(NAME) ?? ''
  if (text.length > LENGTH_MAX) {
    env.ignored(NAME, text, `at most ${LENGTH_MAX} characters`)
    return []
  }
  const byType = new Map()
  for (const part of text.split(';').slice(0, ENTITIES_MAX)) {
    const entity = part.trim()
    if (entity === '') continue
    const read = readEntity(entity)
    if (read === undefined) env.ignored(NAME, entity, 'a list such as \'type{id=1}[description=2]@schema_url;…\', percent-encoded; this entity')
    else byType.set(read.type, read)
  }
  return [...byType.values()]
}

function entityAttributes (entities) {
  return Object.assign(Object.create(null), ...entities.map(({ identifying, descriptive }) => ({ ...identifying, ...descriptive })))
}

/**
 * What the Resource message says of entities: keys of its own attributes. Where a stronger source has set another value,
 * the attribute is not the entity's any more; without all that identifies it, it is another one.
 * @param {object} attributes of the resource
 */
function entityRefs (entities, attributes) {
  const isIts = (values) => (key) => attributes[key] === values[key]
  return entities.filter(({ identifying }) => Object.keys(identifying).every(isIts(identifying)))
    .map(({ type, schemaUrl, identifying, descriptive }) => Object.freeze({
      schemaUrl,
      type,
      idKeys: Object.freeze(Object.keys(identifying)),
      descriptionKeys: Object.freeze(Object.keys(descriptive).filter(isIts(descriptive)))
    }))
}

function readEntity (text) {
  const match = ENTITY.exec(text)
  if (match === null) return undefined
  const [, type, identifying, descriptive = '', schemaUrl = ''] = match
  const entity = { type, schemaUrl, identifying: Object.create(null), descriptive: Object.create(null) }
  try {
    if (addPairs(entity.identifying, identifying) === 0) return undefined
    addPairs(entity.descriptive, descriptive)
    return entity
  } catch { // percent signs that encode nothing
    return undefined
  }
}

function addPairs (attributes, text) {
  let count = 0
  for (const pair of text.split(',')) {
    if (pair.trim() === '') continue
    const equals = pair.indexOf('=')
    const key = decodeURIComponent(pair.slice(0, Math.max(equals, 0)).trim())
    if (key === '') throw new TypeError('no name')
    attributes[key] = decodeURIComponent(pair.slice(equals + 1).trim())
    count++
  }
  return count
}
