'use strict'

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

const BAGGAGE = 'tenant.id=acme%20corp;secret,session=hidden,plan=gold,http.route=%2Fmine'

async function attributesOf (t, trace, { baggage = BAGGAGE, routes = (app) => app.get('/', async () => 'ok'), headers = {} } = {}) {
  const { app, collector } = await tracedApp(t, { listen: false, trace, routes })
  await app.inject({ url: '/', headers: { baggage, ...headers } })
  return (await collector.spans())[0].attributes
}

test('only the listed keys of the caller\'s baggage become attributes', async (t) => {
  const attributes = await attributesOf(t, { headers: { baggage: ['tenant.id', 'missing'] } })
  t.equal(attributes['tenant.id'], 'acme corp')
  for (const key of ['session', 'plan', 'missing']) t.notOk(key in attributes, key)
})

test('they override no attribute of the service', async (t) => {
  t.equal((await attributesOf(t, { headers: { baggage: ['http.route'] } }))['http.route'], '/')
  t.equal((await attributesOf(t, { headers: { baggage: ['plan'] }, attributes: () => ({ plan: 'mine' }) })).plan, 'mine')
  const routes = (app) => app.get('/', { config: { trace: { attributes: { plan: 'route' } } } }, async () => 'ok')
  t.equal((await attributesOf(t, { headers: { baggage: ['plan'] } }, { routes })).plan, 'route')
  const value = (app) => app.get('/', { config: { trace: { attributes: { kind: 'plan' } } } }, async () => 'ok')
  t.equal((await attributesOf(t, { headers: { baggage: ['plan'] } }, { routes: value })).plan, 'gold', 'an attribute value is not taken for a key')
  const sampler = { shouldSample: () => ({ decision: 2 }) }
  t.equal((await attributesOf(t, { headers: { baggage: ['plan'] }, sampler, attributes: () => ({ plan: 'mine' }) })).plan, 'mine')
  t.equal((await attributesOf(t, { headers: { baggage: ['tenant.id'] }, sampler }))['tenant.id'], 'acme corp')
})

test('only baggage of a trusted caller counts, within limits', async (t) => {
  t.notOk('tenant.id' in await attributesOf(t, { headers: { baggage: ['tenant.id'] }, trustIncoming: false }))
  t.equal((await attributesOf(t, { headers: { baggage: ['tenant.id'] } }, { baggage: `tenant.id=${'x'.repeat(4000)}` }))['tenant.id'].length, 256)
})

test('without baggage, or if it is not read, nothing happens', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false, trace: { headers: { baggage: ['tenant.id'] }, spanName: () => 'named' }, routes: (app) => app.get('/', async () => 'ok') })
  await app.inject('/')
  t.match(await collector.spans(), [{ name: 'named' }], 'the other options still work')
  t.notOk('tenant.id' in await attributesOf(t, { headers: { baggage: ['tenant.id'] } }, { baggage: '' }))
  process.env.OTEL_PROPAGATORS = 'tracecontext'
  t.teardown(() => { delete process.env.OTEL_PROPAGATORS })
  t.notOk('tenant.id' in await attributesOf(t, { headers: { baggage: ['tenant.id'] } }))
})
