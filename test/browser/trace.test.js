'use strict'

// The view of a trace: its waterfall, the panel beside it, and spans that arrive late.

const { readFileSync } = require('node:fs')
const { answers, boxOf, inBrowser, rows, shows, styleOf, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const USERS = { method: 'GET', route: '/users/:id', path: () => '/users/7', base: 7 }
const ORDERS = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }

function order ({ seed = 31, fail = false, ...rest } = {}) {
  const made = traces.ids(seed)
  const traceId = made.trace()
  return { traceId, body: traces.request({ made, traceId, route: ORDERS, fail, slow: 1, ...rest }) }
}

const names = async (page) => (await texts(page, '.fall .row .label')).map(anyItem)
const anyItem = (name) => name.replace(/items\/\d+$/, 'items/7')
const row = (page, name) => page.locator('.fall .row', { has: page.locator(`.label:text-is("${name}")`) })
const spoken = (page, name) => row(page, name).locator('.track').getAttribute('aria-label')
const firstBox = (page, selector) => boxOf(page.locator(selector).first())

inBrowser('the waterfall shows times, own time, the critical path, events and failures', async (t, { send, open }) => {
  const { traceId, body } = order({ fail: true })
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  t.same(await names(page), ['POST /orders', 'preHandler authenticate', 'redis GET session', 'handler', 'postgresql SELECT items', 'GET stock:3001/items/7', 'render'])
  t.match(await page.locator('.trace-head').textContent(), /StockError The stock of item \d+ could not be read/)
  t.match(await spoken(page, 'POST /orders'), /^starts at 0, own time .* ms, on the critical path for .* ms, failed .*, 1 event$/)
  t.match(await spoken(page, 'handler'), /1 event/)
  t.notMatch(await spoken(page, 'render'), /critical/, 'it ran in parallel with the slower call')
  t.equal(await page.locator('.event.bad').count(), 1)
  t.ok(await row(page, 'postgresql SELECT items').locator('.path').count() === 1)
  t.match(await styleOf(row(page, 'handler').locator('.bar'), 'background-image'), /linear-gradient/, 'it is pale while it waits for its children')
  const [root, handler] = [await firstBox(page, '.row:nth-child(1) .bar'), await boxOf(row(page, 'handler').locator('.bar'))]
  t.ok(handler.x > root.x && handler.x + handler.width < root.x + root.width, 'a child is drawn inside its parent')
})

inBrowser('a slow request shows its waiting times in its bar, its panel and its route', async (t, { send, open }) => {
  const made = traces.ids(77)
  const traceId = made.trace()
  const attributes = { 'http.request.method': 'GET', 'http.route': '/report', 'http.response.status_code': 200, 'light_trace.time.idle': 0.31, 'light_trace.time.busy': 0.79, 'light_trace.time.gc': 0.105, 'light_trace.time.unscheduled': 0.035 }
  const start = Date.now() - 5000
  const [root, child] = [made.span(), made.span()]
  await send(traces.otlp({
    shop: [
      traces.span({ traceId, id: root, name: 'GET /report', kind: 'SERVER', start, ms: 1240, attributes }),
      traces.span({ traceId, id: child, parent: root, name: 'load', start: start + 10, ms: 300 })
    ]
  }))
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(1).waitFor()
  t.match(await spoken(page, 'GET /report'), /waiting 310 ms, busy event loop 790 ms, garbage collection 105 ms, not running 35\.0 ms/)
  const [bar, ...parts] = await Promise.all(['.bar', '.waits', '.waits .w0', '.waits .w1'].map((name) => boxOf(row(page, 'GET /report').locator(name))))
  t.ok(Math.abs(parts[0].width - bar.width) < 1, 'as long as the bar')
  t.ok(Math.abs(parts[2].width / parts[1].width - 790 / 310) < 0.1, 'each part is as long as its time')
  t.equal(await row(page, 'load').locator('.waits').count(), 0)
  await row(page, 'GET /report').locator('.label').click()
  await page.locator('.panel .dot').nth(3).waitFor()
  t.match(await page.locator('.panel .facts').textContent(), /Waiting310 ms.*Busy event loop790 ms/)
  if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/trace.png` })
  const routes = await open('/routes')
  await routes.locator('.reasons').waitFor()
  t.match(await routes.locator('.reasons').textContent(), /^Slow or failed: 1 busy event loop$/)
  if (process.env.LIGHT_TRACE_LOOK) await routes.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/routes.png` })
})

function manyCalls () {
  const made = traces.ids(91)
  const traceId = made.trace()
  const start = Date.now() - 5000
  const [root, work] = [made.span(), made.span()]
  const call = (index, more = {}) => traces.span({
    traceId,
    id: made.span(),
    parent: root,
    name: 'GET',
    kind: 'CLIENT',
    start: start + 5 + index * 3,
    ms: 2,
    attributes: { 'db.system.name': 'redis' },
    ...more
  })
  const spans = [
    traces.span({ traceId, id: root, name: 'GET /cart', kind: 'SERVER', start, ms: 200, attributes: { 'http.request.method': 'GET', 'http.route': '/cart', 'http.response.status_code': 200 } }),
    ...Array.from({ length: 12 }, (_, index) => call(index)),
    call(12, { error: 'ERR wrong type' }),
    ...Array.from({ length: 8 }, (_, index) => call(13 + index, index === 6 ? { ms: 50 } : {})),
    call(40, { name: 'SET', attributes: { 'db.system.name': 'redis', 'light_trace.fold.count': 990 } }),
    traces.span({ traceId, id: work, parent: root, name: 'audit', start: start + 150, ms: 400, attributes: { 'light_trace.after_response': true } }),
    traces.span({ traceId, id: made.span(), parent: work, name: 'listen', start: start + 160, ms: 300, attributes: { 'light_trace.after_response': true, 'light_trace.never_ended': true } })
  ]
  return { traceId, body: traces.otlp({ shop: spans }) }
}

inBrowser('similar calls in a row are one row that can be opened, without those that failed or were slow', async (t, { send, open }) => {
  const { traceId, body } = manyCalls()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await row(page, 'audit').waitFor()
  const shown = async () => (await rows(page)).map((text) => text.replace(/\s+/g, ' ').replace(/ [\d.]+ m?s$/, ''))
  const folded = ['⇥GET /cart', '≡12 ×redis GET', '≡redis GET', '≡6 ×redis GET', '≡redis GET', '≡redis GET', '≡redis SET990 calls', '·auditafter the response', '·listenafter the responsenever ended']
  t.same(await shown(), folded)
  const fold = page.locator('.fall .row', { hasText: '12 ×' })
  t.equal(await fold.getAttribute('aria-expanded'), 'false')
  t.equal(await fold.locator('.track').getAttribute('aria-label'), '12 similar calls, 24.0 ms in total, the longest 2.00 ms')
  if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/folds.png` })
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key)
  t.equal(await fold.getAttribute('aria-expanded'), 'true')
  t.equal(await page.locator('.row[aria-selected=true]').getAttribute('aria-level'), '3', 'the first of its calls')
  t.equal((await shown()).length, folded.length + 12)
  await send(traces.otlp({ shop: [traces.span({ traceId, id: 'abcdefabcdefabcd', name: 'late', start: Date.now(), ms: 1 })] }))
  await row(page, 'late').waitFor()
  t.equal(await fold.getAttribute('aria-expanded'), 'true', 'an opened row stays open while the trace grows')
  for (const key of ['ArrowLeft', 'ArrowLeft']) await page.keyboard.press(key)
  t.equal(await fold.getAttribute('aria-expanded'), 'false')
  await fold.locator('.twist').click()
  t.equal(await fold.getAttribute('aria-expanded'), 'true')
  await fold.locator('.twist').click()
  await fold.locator('.label').click()
  await page.locator('.panel .remark').getByText('12 similar calls').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('redis GET')
  await page.locator('.tools').getByText(/^\d+ of 21/).waitFor()
})

inBrowser('the keyboard collapses, expands, finds the next error, zooms, searches and closes', async (t, { send, open }) => {
  const { traceId, body } = order({ fail: true })
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  const selected = async () => anyItem(await page.locator('.row[aria-selected=true] .label').textContent())
  t.equal(await selected(), 'POST /orders')
  await page.keyboard.press('ArrowDown')
  t.equal(await page.locator('.row[aria-selected=true]').getAttribute('aria-level'), '2')
  await page.keyboard.press('ArrowLeft')
  t.equal(await page.locator('.fall .row').count(), 6, 'its child is hidden')
  t.equal(await page.locator('.row[aria-selected=true]').getAttribute('aria-expanded'), 'false')
  t.match(await page.locator('.row[aria-selected=true]').textContent(), /\+1/, 'the number of hidden spans')
  await page.keyboard.press('ArrowLeft')
  t.equal(await selected(), 'POST /orders', 'then to the parent')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  t.equal(await page.locator('.fall .row').count(), 7)
  await page.keyboard.press('ArrowRight')
  t.equal(await selected(), 'redis GET session')

  await page.keyboard.press('e')
  t.equal(await selected(), 'GET stock:3001/items/7')
  await page.keyboard.press('e')
  t.equal(await selected(), 'POST /orders')
  await page.keyboard.press('E')
  t.equal(await selected(), 'GET stock:3001/items/7')
  await page.keyboard.press('Enter')
  await page.locator('.panel').getByText('connection refused').waitFor()
  t.match(page.url(), /\?span=[0-9a-f]{16}$/)
  await page.keyboard.press('ArrowUp')
  await page.locator('.panel h2').getByText('SELECT items').waitFor()
  const before = (await firstBox(page, '.row[aria-selected=true] .bar')).width
  await page.keyboard.press('z')
  t.ok((await firstBox(page, '.row[aria-selected=true] .bar')).width > before * 2, 'zoomed to the span')
  await page.keyboard.press('Escape')
  await page.locator('.panel').waitFor({ state: 'hidden' })
  await page.keyboard.press('Escape')
  t.ok(Math.abs((await firstBox(page, '.row[aria-selected=true] .bar')).width - before) < before, 'zoomed out')

  await page.keyboard.press('/')
  await page.keyboard.type('sele')
  await page.getByText('1 of 1').waitFor()
  t.equal(await selected(), 'postgresql SELECT items')
  t.equal(await page.locator('.found').count(), 1)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.waitForURL(/\/$/)
})

inBrowser('the panel shows attributes, exception, resource and ids, and links to requests with the same value', async (t, { send, open }) => {
  const { traceId, body } = order({ fail: true, index: 1 })
  await send(body, order({ seed: 32, index: 1 }).body, order({ seed: 33, index: 2 }).body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').first().click()
  await page.locator('.exception').waitFor()
  t.match(await page.locator('.exception').textContent(), /StockError.*The stock of item \d+ could not.*at loadUser \(\/app\/users\.js:12:7\)/s)
  t.ok(await page.locator('.exception pre .quiet').count() >= 2, 'frames of dependencies are paler')
  const panel = await page.locator('.panel').textContent()
  for (const part of ['http.route', '/orders', 'tenant', 'globex', 'telemetry.sdk.language', traceId]) t.match(panel, part)
  await page.locator('tr', { hasText: 'tenant' }).hover()
  await page.getByRole('link', { name: 'Requests with tenant = globex' }).click()
  await page.waitForURL(/\/\?where=tenant\+%3D\+globex$/)
  await page.waitForFunction(() => document.querySelectorAll('.row:not(.group)').length === 2)
})

inBrowser('a missing parent is a gap, which is filled when it arrives', async (t, { send, open }) => {
  const { traceId, parentId, body, rest } = traces.orphans()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.row.missing').waitFor()
  t.same(await names(page), ['GET /slow', 'parent not received', 'read one', 'read two'])
  t.match(await page.locator('.row.missing').textContent(), parentId)
  t.match(await page.locator('.trace-head').textContent(), /2 orphans/)
  await page.locator('.row.missing').click()
  await page.locator('.panel').getByText('has not been received').waitFor()
  await send(rest)
  await page.locator('.row.missing').waitFor({ state: 'detached' })
  t.same(await names(page), ['GET /slow', 'read all', 'read one', 'read two'])
  t.notMatch(await page.locator('.trace-head').textContent(), /orphan/)
})

inBrowser('a trace can be opened before its first span arrives, and then grows', async (t, { send, open }) => {
  const { traceId, body } = order()
  const page = await open(`/traces/${traceId}`, { expectErrors: true }) // the browser logs the 404
  await page.getByText('This trace is not here').waitFor()
  const [shop, stock] = body.resourceSpans
  await send({ resourceSpans: [shop] })
  await page.locator('.fall .row').nth(5).waitFor()
  const before = (await names(page)).length
  await send({ resourceSpans: [stock] })
  await page.locator('.label:text-is("postgresql SELECT stock")').waitFor()
  t.equal((await names(page)).length, before + 2)
  t.same(await texts(page, '.service bdi'), ['shop', 'stock'], 'a service is named where it begins')
})

inBrowser('a trace can be copied as text and saved for other tools', async (t, { send, open, url }) => {
  const { traceId, body } = order()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
  await page.keyboard.press('c')
  await page.getByText('Trace copied').waitFor()
  t.match(await clipboard(), /POST \/orders[^]*SELECT items/)
  await row(page, 'handler').click()
  await page.getByRole('button', { name: 'Copy subtree as text' }).click()
  await page.getByText('Subtree copied').waitFor()
  t.notMatch(await clipboard(), 'preHandler')
  const save = async (name) => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name, exact: true }).click()])
    return JSON.parse(readFileSync(await download.path()))
  }
  t.ok((await save('OTLP JSON')).resourceSpans.length === 2)
  const { traceEvents } = await save('Perfetto')
  t.ok(traceEvents.some(({ ph, name }) => ph === 'X' && name === 'SELECT items'))
  t.ok(page.url().startsWith(url), 'the page stays open')
})

inBrowser('span links can be followed', async (t, { send, open }) => {
  const made = traces.ids(41)
  const [there, here, target] = [made.trace(), made.trace(), made.span()]
  const start = Date.now()
  await send(traces.otlp({
    shop: [
      traces.span({ traceId: there, id: target, name: 'enqueue', start, ms: 5 }),
      traces.span({ traceId: here, id: made.span(), name: 'job', start, ms: 5, links: [{ traceId: there, spanId: target, attributes: { why: 'retry' } }, { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }] })
    ]
  }))
  const page = await open(`/traces/${here}`)
  await page.locator('.fall .row').first().click()
  await page.locator('.links').waitFor()
  t.match(await page.locator('.links').textContent(), /retry.*not received/s)
  await page.locator('.links a').click()
  await page.waitForURL(new RegExp(`/traces/${there}\\?span=${target}$`))
  await page.locator('.panel h2').getByText('enqueue').waitFor()
})

inBrowser('of 10,000 spans only the visible ones are rendered, and all can be reached', async (t, { send, open }) => {
  const { traceId, body } = traces.bigTrace()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(10).waitFor()
  t.equal(await page.locator('.fall').getAttribute('aria-rowcount'), '10001')
  t.ok(await page.locator('.row').count() < 60)
  await page.locator('.fall[aria-busy=false]').waitFor()
  await page.keyboard.press('End')
  await page.locator('.row[aria-rowindex="10001"]').waitFor()
  t.ok(await page.locator('.row').count() < 60)
  await page.keyboard.press('e')
  t.equal(await page.locator('.row[aria-selected=true] .label').textContent(), 'page 3', 'after the last match the search starts again')
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowLeft')
  await page.waitForFunction(() => document.querySelectorAll('.row').length === 1)
  await page.keyboard.press('e')
  t.equal(await page.locator('.row[aria-selected=true] .label').textContent(), 'page 3', 'collapsed spans are expanded for a match')
})

inBrowser('the span in the address is opened, also if a large trace is loaded again before all of it is here', async (t, { send, open, url }) => {
  const { traceId, body } = traces.bigTrace()
  await send(body)
  const { id, name } = (await (await fetch(`${url}/api/traces/${traceId}/rows`)).json()).rows[7000]
  const page = await open('/')
  const held = []
  await page.route(/\/rows$/, (route) => held.length < 2 ? held.push(route) : route.continue())
  await page.goto(`${url}/traces/${traceId}?span=${id}`)
  await shows(t, () => held.length, 2)
  for (const route of held) await route.continue()
  await page.locator('.panel h2').waitFor()
  t.equal(await page.locator('.row[aria-selected=true] .label').textContent(), name)
})

inBrowser('an open trace grows also while more traces change than an event has', async (t, { send, open }) => {
  const made = traces.ids(29)
  const [traceId, id] = [made.trace(), made.span()]
  const span = (of) => traces.span({ traceId: made.trace(), id: made.span(), name: 'other', start: Date.now(), ms: 1, ...of })
  await send(traces.otlp({ shop: [span({ traceId, id, name: 'first' })] }))
  const page = await open(`/traces/${traceId}`)
  await answers(page, '/rows', 1) // after the connection
  await send(traces.otlp({ shop: [span({ traceId, parent: id, name: 'second' }), ...Array.from({ length: 600 }, () => span())] }))
  await shows(t, () => texts(page, '.fall .row .label'), ['first', 'second'])
})

inBrowser('a trace is drawn from the data in the page, and only the rest of a large one is requested', async (t, { send, open, url }) => {
  const small = order()
  const large = traces.bigTrace()
  await send(small.body, large.body)
  const page = await open('/routes')
  const asked = []
  page.on('request', (request) => request.url().includes('/rows') && asked.push(request.url().slice(url.length)))
  await page.goto(`${url}/traces/${small.traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  await page.locator('#state.live').waitFor()
  t.notOk(asked.some((path) => path.includes('limit=')))
  t.equal(await page.locator('#rows').count(), 0, 'data is removed after it was read')
  await page.goto(`${url}/traces/${large.traceId}`)
  await page.locator('.fall[aria-busy=false]').waitFor()
  await page.locator('#state.live').waitFor()
  t.same(new Set(asked.filter((path) => path.includes(large.traceId))), new Set([`/api/traces/${large.traceId}/rows`]))
  asked.length = 0
  await page.keyboard.press('1')
  await page.locator('.requests .row a, .requests .row').nth(1).waitFor()
  await page.goBack()
  await page.locator('.fall[aria-busy=false]').waitFor()
  t.same(new Set(asked), new Set([`/api/traces/${large.traceId}/rows?limit=150`, `/api/traces/${large.traceId}/rows`]), 'a view that is opened within the page requests both')
})

inBrowser('the name column can be resized by keyboard and mouse, and keeps its width', async (t, { send, open }) => {
  const { traceId, body } = order()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').first().waitFor()
  const splitter = page.getByRole('separator')
  const width = async () => Number(await splitter.getAttribute('aria-valuenow'))
  const before = await width()
  await splitter.focus()
  await page.keyboard.press('ArrowRight')
  t.equal(await width(), before + 2)
  const box = await boxOf(splitter)
  await page.mouse.move(box.x + 4, box.y + 100)
  await page.mouse.down()
  await page.mouse.move(box.x + 120, box.y + 100)
  await page.mouse.up()
  const after = await width()
  t.ok(after > before + 5)
  await page.reload()
  await page.locator('.fall .row').first().waitFor()
  t.equal(await width(), after)
  t.match((await rows(page))[0], /POST \/orders/)
})

inBrowser('dragging over the ruler zooms', async (t, { send, open }) => {
  const made = traces.ids(51)
  const traceId = made.trace()
  await send(traces.request({ made, traceId, route: USERS, fail: false, slow: 1 }))
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').first().waitFor()
  const before = (await firstBox(page, '.row .bar')).width
  const { x, y, width } = await firstBox(page, '.ruler')
  await page.mouse.move(x + width * 0.2, y + 10)
  await page.mouse.down()
  await page.mouse.move(x + width * 0.4, y + 10)
  await page.mouse.up()
  await page.waitForFunction((before) => document.querySelector('.row .bar').getBoundingClientRect().width !== before, before)
  await page.locator('.fall').focus()
  await page.keyboard.press('Escape')
  await page.waitForFunction((before) => Math.abs(document.querySelector('.row .bar').getBoundingClientRect().width - before) < 1, before)
  t.match(page.url(), traceId, 'still the trace')
})

inBrowser('the location of a route\'s declaration links to the editor if the file is on this machine', async (t, { send, open }) => {
  const { traceId, body } = order({ seed: 77 })
  const [root] = body.resourceSpans[0].scopeSpans[0].spans.filter(({ parentSpanId }) => !parentSpanId)
  root.attributes.push({ key: 'code.file.path', value: { stringValue: __filename } }, { key: 'code.line.number', value: { intValue: '3' } })
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await row(page, 'POST /orders').click()
  const link = page.locator('.attributes a[href*="://file/"]')
  await link.waitFor()
  t.same([await link.count(), await link.textContent(), await link.getAttribute('href')], [1, __filename, `vscode://file${__filename}:3`])
})

inBrowser('a blocked event loop is shown with its line and its requests, first the one that blocked it', async (t, { send, open }) => {
  const made = traces.ids(77)
  const [waits, blocks] = [made.trace(), made.trace()]
  const requestOf = (traceId, path, role) => {
    const body = traces.request({ made, traceId, route: { method: 'GET', route: path, path: () => path, base: 7 }, slow: 1 })
    const span = body.resourceSpans[0].scopeSpans[0].spans.find(({ parentSpanId }) => !parentSpanId)
    const values = { id: 'f00dbabe00000001', role, 'culprit.trace_id': blocks }
    span.events = [{
      name: 'light_trace.blocked_loop',
      timeUnixNano: span.startTimeUnixNano,
      attributes: [
        ...Object.entries(values).map(([name, stringValue]) => ({ key: `light_trace.blocked_loop.${name}`, value: { stringValue } })),
        { key: 'light_trace.blocked_loop.duration', value: { doubleValue: 0.612 } },
        { key: 'code.function.name', value: { stringValue: 'search' } },
        { key: 'code.file.path', value: { stringValue: '/app/search.js' } },
        { key: 'code.line.number', value: { intValue: '14' } }
      ]
    }]
    return body
  }
  await send(requestOf(blocks, '/search', 'culprit'))
  await send(requestOf(waits, '/waits', 'victim'))
  const page = await open(`/traces/${waits}`)
  await row(page, 'GET /waits').click()
  const section = page.locator('details', { has: page.locator('h3:text-is("Blocked event loop")') })
  await section.waitFor()
  t.match(await section.textContent(), /waited 612 ms while another request blocked the event loop at search \(\/app\/search\.js:14\)/)
  const items = section.locator('li')
  t.equal(await items.count(), 2)
  t.match(await items.nth(0).textContent(), /\/search.* blocked it$/)
  t.match(await items.nth(1).textContent(), /\/waits/)
  await items.nth(0).locator('a').click()
  await row(page, 'GET /search').click()
  await page.locator('details p:has-text("blocked the event loop for 612 ms")').waitFor()
})
