// The same thirty requests with light-trace and with the tracers from which users migrate. The resulting tables are in spans.md, and the
// most important rows in docs/migration.md. If a span of any tracer changes, the test fails. `npm run test:suite -- ecosystem migration
// --update` updates both.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CALLER, requests } from './requests.mjs'
import { serve } from './serve.mjs'
import { allTables, NAMES, pageTables } from './tables.mjs'

const ROOT = join(import.meta.dirname, '..', '..') // this file runs in a copy, two folders below the package's root
const PAGES = { 'docs/migration.md': pageTables, 'test/ecosystem/migration/spans.md': allTables }
const [START, END] = ['<!-- migration:start -->', '<!-- migration:end -->']
const served = new Map()

test('every setup answers the thirty requests in the same way', async () => {
  for (const setup of Object.keys(NAMES)) served.set(setup, await serve(setup))
  for (const [setup, answered] of served) assert.deepEqual(answersOf(answered), answersOf(served.get('light-trace')), setup)
  assert.equal(requests.length, 30)
})

for (const [name, tables] of Object.entries(PAGES)) {
  test(`${name} has the spans that each request leaves`, () => {
    const page = readFileSync(join(ROOT, name), 'utf8')
    const [before, rest] = page.split(START)
    const made = `${before}${START}\n${tables(served)}\n${rest.slice(rest.indexOf(END))}`
    if (process.env.UPDATE === '1') writeFileSync(join(ROOT, name), made)
    else assert.equal(page, made)
  })
}

test('light-trace records every request except those that Fastify never gets', () => {
  const lost = served.get('light-trace').filter(({ spans }) => !spans.some(({ kind }) => kind === 'SERVER')).map(({ name }) => name)
  assert.deepEqual(lost, ['a malformed URL'])
})

const CONTEXTS = { name: 'contexts', path: '/contexts', traceId: 'c'.repeat(32) }

test('next to an SDK, each makes one SERVER span per request and sends it to its own collector', async () => {
  const all = await serve('beside', [CONTEXTS])
  assert.deepEqual(answersOf(all.slice(0, requests.length)), answersOf(served.get('light-trace')))
  for (const { name, spans, caller = true, calls } of all) {
    assertNoneTwice(name, spans)
    if (!caller) continue // each tracer starts its own trace
    const [ours, theirs] = ['/light-trace', ''].map((path) => spans.filter(({ sentTo }) => sentTo === path))
    assert.deepEqual(ours.map(({ scope, kind }) => `${scope} ${kind}`), name === 'a malformed URL' ? [] : ['light-trace SERVER'], name)
    assert.deepEqual(serverSpans(theirs).map(({ scope }) => scope), ['@opentelemetry/instrumentation-http'], name)
    for (const { parentSpanId } of [...ours, ...serverSpans(theirs)]) assert.equal(parentSpanId, CALLER, `${name}: the caller is the parent of both`)
    for (const { traceparent } of calls) assert.ok(theirs.some(({ spanId }) => traceparent.includes(spanId)), `${name}: the call's parent exists`)
  }
  assertContextsAgree(all)
})

test('next to dd-trace, each makes one SERVER span per request, in the caller’s trace', async () => {
  const all = await serve('beside-dd', [CONTEXTS])
  assert.deepEqual(answersOf(all.slice(0, requests.length)), answersOf(served.get('light-trace')))
  for (const { name, spans, caller = true, calls } of all) {
    assertNoneTwice(name, spans)
    if (!caller) continue
    const [ours, theirs] = ['/light-trace', ''].map((path) => spans.filter(({ sentTo }) => sentTo === path))
    assert.equal(serverSpans(ours).length, name === 'a malformed URL' ? 0 : 1, name)
    assert.equal(serverSpans(theirs).length, 1, name)
    for (const { parentSpanId } of [...serverSpans(ours), ...serverSpans(theirs)]) assert.equal(parentSpanId, CALLER, name)
    for (const { traceparent } of calls) assert.ok(theirs.some(({ spanId }) => traceparent.includes(spanId)), `${name}: the call's parent exists`)
  }
  assertContextsAgree(all)
})

test('with an SDK, light-trace completes the SDK’s SERVER span, and nothing is sent twice', async () => {
  const all = await serve('together', [CONTEXTS])
  assert.deepEqual(answersOf(all.slice(0, requests.length)), answersOf(served.get('light-trace')))
  for (const { name, spans } of all) {
    assertNoneTwice(name, spans)
    assert.deepEqual(serverSpans(spans).map(({ scope }) => scope), ['@opentelemetry/instrumentation-http'], name)
    assert.ok(spans.every(({ scope }) => scope !== 'light-trace'), name)
  }
  const [span] = serverSpans(all.find(({ name }) => name === 'an error').spans)
  assert.deepEqual([span.name, span.isError, span.events], ['GET /throws', true, ['exception']])
  assertContextsAgree(all)
})

function assertContextsAgree (all) {
  assert.deepEqual(JSON.parse(all.at(-1).body), { isCurrent: true, traceIds: Array(3).fill(CONTEXTS.traceId) })
}

function assertNoneTwice (name, spans) {
  const ids = spans.map(({ spanId }) => spanId)
  assert.deepEqual(ids, [...new Set(ids)], `${name}: no span is sent twice`)
}

function serverSpans (spans) {
  return spans.filter(({ kind }) => kind === 'SERVER')
}

function answersOf (requests) {
  return requests.map(({ name, status, body }) => [name, status, body])
}
