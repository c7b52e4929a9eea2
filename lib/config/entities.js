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

module.exports = { entityAttributes }

/**
 * The attributes of all entities that can be read; a broken one is ignored with a warning, and of one type the last
 * counts.
 */
function entityAttributes (env) {
  const text = env.text(NAME) ?? ''
  if (text.length > LENGTH_MAX) {
    env.ignored(NAME, text, `at most ${LENGTH_MAX} characters`)
    return {}
  }
  const byType = new Map()
  for (const part of text.split(';').slice(0, ENTITIES_MAX)) {
    const entity = part.trim()
    if (entity === '') continue
    const [type, attributes] = readEntity(entity) ?? []
    if (type === undefined) env.ignored(NAME, entity, 'a list such as \'type{id=1}[description=2]@schema_url;…\', percent-encoded; this entity')
    else byType.set(type, attributes)
  }
  return Object.assign(Object.create(null), ...byType.values())
}

function readEntity (text) {
  const match = ENTITY.exec(text)
  if (match === null) return undefined
  const [, type, identifying, descriptive = ''] = match
  const attributes = Object.create(null)
  try {
    if (addPairs(attributes, identifying) === 0) return undefined
    addPairs(attributes, descriptive)
    return [type, attributes]
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
