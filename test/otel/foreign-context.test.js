'use strict'

// A propagator of another format puts more than a span into its Context, e.g. B3's debug flag or its own keys. It reads them again when it
// writes the headers of a call.

const { test } = require('tap')
const { createContextKey, propagation, context, trace } = require('@opentelemetry/api')
const { tracedApp } = require('../support/traced-app')
const { upstream } = require('../support/upstream')

const DEBUG = createContextKey('debug')

const propagator = {
  extract (context, carrier, getter) {
    const id = getter.get(carrier, 'x-trace')
    if (id === undefined) return context
    return trace.setSpanContext(context, { traceId: id, spanId: 'b7ad6b7169203331', traceFlags: 1, isRemote: true })
      .setValue(DEBUG, getter.get(carrier, 'x-debug'))
  },
  inject (context, carrier, setter) {
    setter.set(carrier, 'x-trace', trace.getSpanContext(context).traceId)
    if (context.getValue(DEBUG) !== undefined) setter.set(carrier, 'x-debug', context.getValue(DEBUG))
  },
  fields: () => ['x-trace', 'x-debug']
}

const CALLER = { 'x-trace': '0af7651916cd43dd8448eb211c80319c', 'x-debug': '1' }

async function gateway (t, trace = {}, config = {}) {
  propagation.setGlobalPropagator(propagator)
  t.teardown(() => propagation.disable())
  const next = await upstream(t)
  return tracedApp(t, {
    trace,
    routes: (app) => app.get('/', { config }, async (request) => ({
      seen: context.active().getValue(DEBUG) ?? request.trace.getValue(DEBUG) ?? null,
      called: await (await fetch(next.origin)).json(),
      injected: request.trace.inject()
    }))
  })
}

test('values that a propagator extracts are in the request\'s context and are passed on with its calls', async (t) => {
  const { origin } = await gateway(t)
  const { seen, called, injected } = await (await fetch(origin, { headers: CALLER })).json()
  t.equal(seen, '1')
  t.match(called, CALLER)
  t.match(injected, CALLER)
})

test('on an ignored route they are passed on, too', async (t) => {
  const { origin } = await gateway(t, {}, { trace: false })
  const { called } = await (await fetch(origin, { headers: CALLER })).json()
  t.match(called, CALLER)
})

test('values from an untrusted caller are not passed on', async (t) => {
  const { origin } = await gateway(t, { trustIncoming: false })
  const { seen, called } = await (await fetch(origin, { headers: CALLER })).json()
  t.equal(seen, null)
  t.notOk('x-debug' in called)
  t.not(called['x-trace'], CALLER['x-trace'])
})
