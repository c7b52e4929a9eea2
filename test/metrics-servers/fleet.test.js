'use strict'

// Tests the rules and the dashboard of examples/fleet with a real promtool, and with a real Prometheus. It scrapes applications that did
// everything that the panels show: errors, calls that succeed and fail, queries, and losses.

const { spawnSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { tracingChannel } = require('node:diagnostics_channel')
const { join } = require('node:path')
const { test } = require('tap')
const Fastify = require('fastify')
const { parse } = require('yaml')
const lightTrace = require('../..')
const { freePort } = require('../../scripts/free-port')
const { startFakeCollector } = require('../support/fake-collector')
const { startPrometheus } = require('../support/prometheus-server')

const { METRICS_PROMETHEUS, METRICS_PROMTOOL } = process.env
const FLEET = join(__dirname, '..', '..', 'examples', 'fleet')
const RULES = join(FLEET, 'prometheus', 'rules.yml')
const dashboard = require('../../examples/fleet/grafana/light-trace.json')
const redis = tracingChannel('node-redis:command')
const ROUNDS = 2 // a rate needs two different scrapes

test('promtool accepts the rules, and their unit tests pass', async (t) => {
  for (const args of [['check', 'rules', RULES], ['check', 'config', join(FLEET, 'prometheus', 'prometheus.yml')], ['test', 'rules', join(FLEET, 'prometheus', 'rules.test.yml')]]) {
    const { status, stdout, stderr } = spawnSync(METRICS_PROMTOOL, args, { encoding: 'utf8' })
    t.equal(status, 0, `${args.join(' ')}\n${stdout}${stderr}`)
  }
})

test('every alert has a unit test in which it fires, and one in which it does not', async (t) => {
  const read = (name) => parse(readFileSync(join(FLEET, 'prometheus', name), 'utf8'))
  const alerts = read('rules.yml').groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).filter(Boolean)
  const cases = read('rules.test.yml').tests.flatMap((each) => each.alert_rule_test)
  t.ok(alerts.length >= 9)
  for (const alert of alerts) {
    t.ok(cases.some(({ alertname, exp_alerts: expected }) => alertname === alert && expected?.length > 0), `${alert} fires`)
    t.ok(cases.some(({ alertname, exp_alerts: expected }) => alertname === alert && expected === undefined), `${alert} does not`)
  }
})

test('every panel shows data of an application, and the rules are evaluated', async (t) => {
  const { prometheus, rules } = await scrapedShop(t)
  const targets = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*') })))
  t.ok(targets.length > 30)
  await Promise.all(targets.map(async ({ title, expr }) => {
    t.notMatch(expr, '$', `${title}: no other variable`)
    const response = await fetch(`${prometheus.origin}/api/v1/query`, { method: 'POST', body: new URLSearchParams({ query: expr }) })
    t.match(await response.json(), { status: 'success' }, `${title} is valid: ${expr}`)
    const shows = await prometheus.query(expr, (result) => result.some(({ value }) => Number.isFinite(Number(value[1])))).then(() => true, () => false)
    t.ok(shows, `${title} shows a value: ${expr}`)
  }))

  for (const alert of ['SpansAreLost', 'SpansAreRejected']) await prometheus.query(`ALERTS{alertname="${alert}", alertstate="firing", job="shop"}`)
  for (const ratio of ['errors', 'slow']) {
    const [{ value }] = await prometheus.query(`job:http_server_${ratio}:ratio_rate5m{job="shop"}`, ([{ value }]) => Number(value[1]) >= 0)
    t.ok(ratio === 'slow' || Number(value[1]) > 0.1, `${ratio}: ${value[1]}`)
  }
  for (const { name, health, lastError } of await rules()) t.equal(health, 'ok', `${name}: ${lastError}`)
})

test('the dashboard can be imported: ids are unique, panels do not overlap, and each uses the variable\'s data source', async (t) => {
  const { panels, templating, uid } = dashboard
  t.equal(uid, 'light-trace')
  t.same(templating.list.map(({ name }) => name), ['datasource', 'job'])
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const places = panels.flatMap(({ gridPos: { x, y, w, h } }) => Array.from({ length: w * h }, (_, i) => `${x + i % w} ${y + Math.floor(i / w)}`))
  t.equal(new Set(places).size, places.length)
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
  for (const { title, targets = [], datasource } of panels.filter(({ type }) => type !== 'row')) {
    t.ok(targets.length > 0, title)
    for (const each of [datasource, ...targets.map((target) => target.datasource)]) t.same(each, { type: 'prometheus', uid: '${datasource}' }, title) // eslint-disable-line no-template-curly-in-string
  }
})

/** An application whose collector refuses the first request, then rejects part of the next, then accepts everything, and a Prometheus that scrapes it. */
async function scrapedShop (t) {
  const collector = await startFakeCollector(t)
  collector.script = [{ status: 400 }, { partialSuccess: { rejectedSpans: 1, errorMessage: 'no' } }, { status: 200 }]
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(lightTrace, {
    serviceName: 'shop',
    exporter: { url: collector.url },
    metrics: { path: '/metrics', exporter: 'none', runtime: true, activeRequests: true, bodySizes: true }
  })
  const nobody = `http://127.0.0.1:${await freePort()}`
  app.get('/users/:id', async () => ({ ok: true }))
  app.post('/boom', async () => { throw new TypeError('boom') })
  app.get('/calls', async () => {
    await fetch(`${app.listeningOrigin}/users/1`).then((response) => response.text())
    await fetch(nobody).catch(() => {})
    await redis.tracePromise(() => new Promise(setImmediate), { command: 'GET', args: ['GET', 'user:1'], database: 0, serverAddress: 'redis.internal', serverPort: 6379 })
    return { ok: true }
  })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const round = async () => {
    for (const path of ['/users/7', '/calls', '/nowhere']) await fetch(origin + path).then((response) => response.text())
    await fetch(`${origin}/boom`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }).then((response) => response.text())
    await app.lightTrace.flush()
  }
  await round() // refused
  await round() // one span is rejected
  t.match(app.lightTrace.stats().spans, { rejected: 1, dropped: { non_retryable: Number } })
  const prometheus = await startPrometheus(t, METRICS_PROMETHEUS, {
    config: `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${RULES}']
scrape_configs: [{ job_name: shop, static_configs: [{ targets: ['${new URL(origin).host}'] }] }]
`
  })
  for (let i = 1; i <= ROUNDS; i++) {
    await prometheus.query('http_server_request_duration_seconds_count{http_route="/calls"}', ([{ value }]) => Number(value[1]) >= 1 + i)
    await round()
  }
  const rules = async () => {
    const { data } = await fetch(`${prometheus.origin}/api/v1/rules`).then((response) => response.json())
    return data.groups.flatMap((group) => group.rules)
  }
  return { prometheus, rules }
}
