'use strict'

// A route's `config.trace.spans` overrides the instance's option. It can add stages, narrow them and switch them off. A stage without user
// hooks has no span.
// Feature: stages

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

const hook = async () => {}

async function treeOf (t, { spans, route, hooks = {}, routeHooks = {}, after = {} }) {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { spans },
    routes: (app) => {
      for (const [name, fn] of Object.entries(hooks)) app.addHook(name, fn)
      app.get('/', { ...routeHooks, ...(route === undefined ? {} : { config: { trace: { spans: route } } }) }, async () => ({ ok: true }))
      for (const [name, fn] of Object.entries(after)) app.addHook(name, fn)
    }
  })
  await app.inject('/')
  return (await collector.tree()).split('\n').slice(1).map((line) => line.trim().replace('INTERNAL ', ''))
}

test('a stage without hooks has no span', async (t) => {
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend', 'preValidation'] }, hooks: { preHandler: hook } }), ['preHandler'])
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend'] } }), [])
  t.same(await treeOf(t, { spans: { hooks: ['preHandler'] }, routeHooks: { preHandler: hook } }), ['preHandler'])
})

test('a route can narrow the option of the instance', async (t) => {
  const hooks = { preHandler: hook, onSend: async (request, reply, payload) => payload, preValidation: hook }
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend'] }, hooks }), ['preHandler', 'onSend'])
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend'] }, hooks, route: { hooks: ['onSend'] } }), ['onSend'])
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend'] }, hooks, route: { hooks: [] } }), [])
  t.same(await treeOf(t, { spans: { hooks: ['preHandler', 'onSend'], handler: true }, hooks, route: {} }), [])
})

test('a route can ask for a stage that the instance does not', async (t) => {
  t.same(await treeOf(t, { spans: { hooks: ['preHandler'] }, hooks: { preHandler: hook, preValidation: hook }, routeHooks: { preValidation: hook }, route: { hooks: ['preValidation'] } }),
    ['preValidation'])
})

test('hooks that are added after the route count, too', async (t) => {
  t.same(await treeOf(t, { spans: { hooks: ['preHandler'] }, after: { preHandler: hook } }), ['preHandler'])
})
