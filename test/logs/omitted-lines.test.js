'use strict'

// A record has all of its line except the omitted attributes, whichever of the two writers handles the line.
// Feature: logs, omit

const { test } = require('tap')
const { OmittingLine } = require('../../lib/features/logs/usual-line')
const { Omission } = require('../../lib/features/omit')
const { loggingApp } = require('../support/logging-app')
const { randomFrom } = require('../support/random')

const OMITTED = ['f0', 'n\u20ac', 'a.b', 'deep.*', 'p.*', 'bound', 'err.secret', 'exception.message', 'f']
const KEYS = ['f0', 'f1', 'f', 'ff', 'n\u20ac', 'a', 'a.b', 'a.bc', 'p', 'p.', 'p.q', 'pq', 'deep', 'bound', 'level0', 'time', 'other']

/** Returns the members of a line that should remain. It shares no code with the tested code. */
function left (value, path = '') {
  if (Array.isArray(value)) return value.map((item) => left(item, path))
  if (typeof value !== 'object' || value === null) return value
  const at = (key) => path === '' ? key : `${path}.${key}`
  const isOut = (key) => ['f0', 'n\u20ac', 'a.b', 'bound', 'f'].includes(key) || /^(?:deep|p)\./.test(key)
  return Object.fromEntries(Object.entries(value).filter(([key]) => !isOut(at(key))).map(([key, member]) => [key, left(member, at(key))]))
}

test('random lines of loggers with bindings omit the attributes', async (t) => {
  const { app, lines, exported } = await loggingApp(t, { trace: { omitAttributes: OMITTED } })
  const random = randomFrom(5)
  const one = (...list) => list[Math.floor(random() * list.length)]
  const value = (depth) => {
    const kind = depth > 3 ? 0 : Math.floor(random() * 5)
    if (kind < 3) return one('text', 'quo"te', 7, 1.5, true, null, '\0', '')
    if (kind === 3) return Array.from({ length: random() * 3 }, () => value(depth + 1))
    return Object.fromEntries(Array.from({ length: random() * 4 }, () => [one('b', 'c', 'd.e', 'b.x'), value(depth + 1)]))
  }
  const fields = () => Object.fromEntries(Array.from({ length: random() * 6 }, () => [one(...KEYS), value(0)]))
  const loggers = [app.log, app.log.child({ bound: 'secret', stays: 1 }), app.log.child({ f: { a: 1 }, a: { b: 1, c: 2 } }), app.log.child({ bound: 1 })]
  for (let n = 0; n < 2000; n++) one(...loggers).info(fields(), 'line')
  const records = await exported()
  t.equal(records.length, 2000)
  records.forEach(({ attributes, droppedAttributesCount }, i) => {
    const { level, time, pid, hostname, msg, ...members } = JSON.parse(lines[i])
    const expected = left(members)
    if (JSON.stringify(attributes) !== JSON.stringify(expected)) t.same(attributes, expected, lines[i])
    if (droppedAttributesCount !== 0) t.equal(droppedAttributesCount, 0)
  })
})

test('errors are omitted by their names in the conventions', async (t) => {
  const { app, exported } = await loggingApp(t, { trace: { omitAttributes: OMITTED } })
  for (const code of [undefined, 'E_NO']) app.log.error({ err: Object.assign(new Error('no'), { secret: 'x', code, more: { secret: 1 } }), f1: 1 }, 'failed')
  for (const { attributes, body } of await exported()) {
    t.match(attributes, { 'exception.stacktrace': /^Error: no/, 'err.more': { secret: 1 }, f1: 1 })
    t.notOk('exception.message' in attributes || 'err.secret' in attributes)
    t.equal(body, 'failed')
  }
})

// Lines must not take several times as long as soon as any attribute is omitted.
test('a line with omitted attributes is still written in one pass, except for members of a map', async (t) => {
  const line = new OmittingLine({ attributes: 128, attributeValueLength: 100 }, { messageKey: 'msg', errorKey: 'err' }, new Omission(OMITTED))
  t.ok(line.write('{"level":30,"f0":{"a":[1]},"f1":2,"p.q":"x","msg":"m"}\n', '') > 0)
  t.ok(line.write('{"level":30,"f1":2,"other":{"b":1},"msg":"m"}\n', ',"bound":1,"f1":2') > 0)
  t.equal(line.write('{"level":30,"a":{"b":1},"msg":"m"}\n', ''), 0)
})
