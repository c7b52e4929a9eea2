'use strict'

// What the pages of routes, exceptions and logs explain, filter and fold.

const { problemsOf } = require('./support/axe')
const { inBrowser, shows, styleOf, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const { HOSTILE } = traces

const made = traces.ids(53)

/** A request of one span, with its exception if it has one. */
function request ({ method = 'GET', route = '/users/:id', service = 'shop', status = 200, failed = status >= 500, exception, attributes = {}, ms = 5, start = Date.now() - 10 }) {
  const traceId = made.trace()
  const events = exception === undefined ? [] : [{ name: 'exception', at: start + 1, attributes: { 'exception.type': exception, 'exception.message': `${exception} of ${route}`, 'exception.stacktrace': `${exception}: x\n    at load (/app/${exception}.js:1:1)` } }]
  const span = traces.span({ traceId, id: made.span(), name: `${method} ${route}`, kind: 'SERVER', start, ms, error: failed ? 'failed' : undefined, events, attributes: { 'http.request.method': method, 'http.route': route, 'url.path': route, 'http.response.status_code': status, ...attributes } })
  return { traceId, spanId: span.spanId, body: traces.otlp({ [service]: [span] }) }
}

async function failures (send) {
  const given = [
    { status: 500, exception: 'TypeError' }, { status: 500, exception: 'TypeError' }, { status: 503, exception: 'StockError', route: '/orders', service: 'orders' },
    { status: 404, exception: 'NotFoundError' }, { status: 409, exception: 'ConflictError', route: '/orders', service: 'orders' }, { status: 200, exception: 'CacheError' }
  ]
  for (const each of given) await send(request(each).body)
}

/** Sends lines as Fastify's logger writes them. @param {object[]} lines { id, start: [method, url] | end: [status, ms] | text, traceId, spanId, at, members } */
async function sendLines (url, ...lines) {
  const keyValues = (values) => Object.entries(values).map(([key, value]) => ({ key, value }))
  const string = (stringValue) => ({ stringValue })
  const map = (values) => ({ kvlistValue: { values: keyValues(values) } })
  const logRecords = lines.map(({ id, start, end, text, traceId, spanId, at = Date.now(), members = {}, severity = 9 }) => ({
    timeUnixNano: `${BigInt(Math.round(at * 1e3))}000`,
    severityNumber: severity,
    body: string(start ? 'incoming request' : end ? 'request completed' : text),
    traceId,
    spanId,
    attributes: keyValues({
      ...id && { reqId: string(id) },
      ...start && { req: map({ method: string(start[0]), url: string(start[1]), host: string('localhost:3000') }) },
      ...end && { res: map({ statusCode: { intValue: String(end[0]) } }), responseTime: { doubleValue: end[1] } },
      ...members
    })
  }))
  const body = JSON.stringify({ resourceLogs: [{ resource: { attributes: keyValues({ 'service.name': string('shop') }) }, scopeLogs: [{ scope: { name: 'pino' }, logRecords }] }] })
  const { status } = await fetch(`${url}/v1/logs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  if (status !== 200) throw new Error(`the viewer answered ${status}`)
}

const rules = (page) => page.evaluate(() => ['--bad', '--accent'].map((name) => {
  const probe = document.body.appendChild(Object.assign(document.createElement('i'), {}))
  probe.style.color = `var(${name})`
  const { color } = window.getComputedStyle(probe)
  probe.remove()
  return color
}))

inBrowser('a route\'s rate is of the last minute, and its figures are not links', async (t, { send, open }) => {
  const page = await open('/routes') // before a minute of requests begins, because a browser may need a part of it to start
  for (let i = 0; i < 3; i++) await send(request({}).body)
  await send(traces.otlp({ shop: Array.from({ length: 300 }, () => traces.span({ traceId: made.trace(), id: made.span(), name: 'GET /busy', kind: 'SERVER', start: Date.now(), ms: 1, attributes: { 'http.request.method': 'GET', 'http.route': '/busy' } })) }))
  await send(request({ status: 500 }).body)
  const cell = (route, key) => page.locator('tbody tr', { hasText: route }).locator(`.k-${key}`)
  await cell('/busy', 'perSecond').waitFor()
  await shows(t, () => cell('/users', 'perSecond').textContent(), '4/min')
  t.match(await cell('/busy', 'perSecond').textContent(), /^[\d.]+\/s$/)
  await page.getByRole('columnheader', { name: 'Rate, last minute' }).waitFor()
  const [bad, accent] = await rules(page)
  for (const key of ['count', 'perSecond', 'p50Ms', 'p99Ms', 'maxMs']) t.not(await styleOf(cell('/users', key)), accent, key)
  t.equal(await styleOf(cell('/users', 'errors').locator('a')), bad, 'red: requests that failed')
  t.equal(await page.getByText('what took most of their time').count(), 0, 'nothing was slow')
  await cell('/users', 'route').getByRole('link').click()
  await page.locator('.facts').getByText('Rate, last minute').waitFor()
  t.match(await page.locator('.facts').textContent(), /Rate, last minute4\/min/)
})

inBrowser('what slow requests waited for is explained where it is counted', async (t, { send, open }) => {
  const waits = (idle, busy) => ({ 'light_trace.time.idle': idle, 'light_trace.time.busy': busy })
  for (const [idle, busy] of [[0.4, 0.01], [0.4, 0.01], [0.01, 0.4]]) await send(request({ ms: 420, attributes: waits(idle, busy) }).body)
  const page = await open('/routes')
  await page.locator('tbody .reasons').waitFor()
  t.equal(await page.locator('tbody .reasons').textContent(), 'Slow or failed: 2 waiting · 1 busy event loop')
  const said = await page.locator('.slow-legend').textContent()
  t.match(said, /slow or failed requests.*most of their time.*Waiting for calls.*Busy event loop: JavaScript ran/i)
  await page.getByRole('link', { name: /users/ }).first().click()
  await page.getByRole('table', { name: 'Slow or failed requests' }).waitFor()
  t.match(await page.getByRole('table', { name: 'Slow or failed requests' }).textContent(), /Waiting2.*for calls.*Busy event loop1.*JavaScript ran/)
})

inBrowser('exceptions of failed requests, of wrong requests and of others are apart, and only the first are red', async (t, { send, open }) => {
  await failures(send)
  const page = await open('/exceptions')
  await page.locator('summary').nth(4).waitFor()
  t.same(await texts(page, '.scroll h2'), ['Failed requests 2', 'Client errors, 4xx 2', 'Handled 1'])
  t.same(await texts(page, 'section:nth-of-type(1) .type'), ['StockError', 'TypeError'])
  t.same(await texts(page, 'section:nth-of-type(2) .type'), ['ConflictError', 'NotFoundError'])
  t.same(await texts(page, 'section:nth-of-type(2) .code'), ['409', '404'])
  t.same(await texts(page, 'section:nth-of-type(3) .type'), ['CacheError'])
  const [bad] = await rules(page)
  t.equal(await styleOf(page.locator('section:nth-of-type(1) .times').first()), bad)
  for (const of of ['.times', '.code', '.type', '.spark']) {
    for (const section of [2, 3]) t.not(await styleOf(page.locator(`section:nth-of-type(${section}) ${of}`).first()), bad, of)
  }
  const { exceptions } = await (await fetch(new URL('/api/exceptions', page.url()))).json()
  const most = Math.max(...exceptions.find(({ type }) => type === 'TypeError').histogram.map(({ count }) => count)) // one, if 10 s ended between the two
  t.match(await page.locator('section:nth-of-type(1) .spark').nth(1).getAttribute('aria-label'), new RegExp(`^2 requests in 10 min, at most ${most} in 10 s, at \\d\\d:\\d\\d:\\d\\d$`))
  t.ok(await page.evaluate("document.querySelector('.spark path').getBBox().height > 0"))
})

inBrowser('an exception that arrives while the list is loading is shown', async (t, { send, open }) => {
  const page = await open('/')
  const held = []
  await page.route(/\/api\/exceptions$/, async (route) => {
    const response = await route.fetch()
    if (held.length === 0) await new Promise((resolve) => held.push(resolve))
    await route.fulfill({ response })
  })
  await page.keyboard.press('3')
  const announced = page.evaluate(() => new Promise((resolve) => {
    const events = new window.EventSource('/api/events')
    events.addEventListener('hello', () => { window.isListening = true })
    events.addEventListener('routes', () => { events.close(); resolve() })
  }))
  await page.waitForFunction(() => window.isListening)
  await shows(t, () => held.length, 1)
  await send(request({ status: 500, exception: 'TypeError' }).body)
  await announced
  held[0]()
  await page.getByText('1 request', { exact: true }).waitFor()
})

inBrowser('exceptions are filtered by text, route, service and status, in the address', async (t, { send, open }) => {
  await failures(send)
  const page = await open('/exceptions')
  await page.locator('summary').nth(4).waitFor()
  const types = async (...wanted) => {
    await page.waitForFunction((count) => document.querySelectorAll('summary').length === count, wanted.length)
    t.same((await texts(page, '.type')).sort(), wanted.sort())
  }
  await page.keyboard.press('/')
  await page.keyboard.type('STOCKERROR.JS')
  await types('StockError')
  await page.getByText('1 of 5 exceptions').waitFor()
  t.match(page.url(), /\/exceptions\?q=STOCKERROR\.JS$/)
  await page.getByPlaceholder('Search exceptions').fill('')
  await types('TypeError', 'StockError', 'NotFoundError', 'ConflictError', 'CacheError')
  await page.getByLabel('Status').selectOption('4xx')
  await types('NotFoundError', 'ConflictError')
  await page.getByLabel('Service').selectOption('orders')
  await types('ConflictError')
  t.match(page.url(), /\?service=orders&status=4xx$/)
  await page.reload()
  await types('ConflictError')
  await page.getByLabel('Service').selectOption('')
  await page.getByLabel('Status').selectOption('error')
  await page.getByLabel('Route').selectOption('GET /orders')
  await types('StockError')
  await page.getByPlaceholder('Search exceptions').fill('nothing')
  await page.getByText('No match.').waitFor()
  await page.locator('.scroll').focus()
  await page.keyboard.press('Escape')
  await types('TypeError', 'StockError', 'NotFoundError', 'ConflictError', 'CacheError')
  t.match(page.url(), /\/exceptions$/)
  const other = await open('/exceptions?status=404')
  await other.getByText('NotFoundError', { exact: true }).waitFor()
  t.same(await texts(other, '.type'), ['NotFoundError'])
})

inBrowser('an open exception stays open, in the address too, and keeps the focus', async (t, { send, open }) => {
  await failures(send)
  const page = await open('/exceptions')
  await page.locator('summary', { hasText: 'TypeError' }).click()
  await page.getByRole('link', { name: 'Open the last one' }).focus()
  await page.waitForURL(/open=/)
  await send(request({ status: 500, exception: 'TypeError' }).body)
  await page.getByText('3 requests').waitFor()
  t.equal(await page.evaluate(() => document.activeElement.textContent), 'Open the last one')
  await page.reload()
  await page.getByText('at load (/app/TypeError.js:1:1)').waitFor()
  await page.getByRole('link', { name: 'Show its requests' }).click()
  await page.waitForURL(/\?exception=/)
})

inBrowser('the two lines that Fastify writes for a request are one row, which opens', async (t, { send, open, url }) => {
  const [one, two] = [request({}), request({ status: 500 })]
  await send(one.body, two.body)
  await sendLines(url,
    { text: 'Server listening' },
    { id: 'req-1', start: ['GET', '/users/7?a=1'], ...one },
    { id: 'req-1', text: 'loading', ...one },
    { id: 'req-2', start: ['POST', '/orders'], ...two },
    { id: 'req-1', end: [200, 1.234567891], ...one },
    { id: 'req-2', end: [500, 1234.5678], ...two },
    { id: 'req-3', start: ['GET', '/open'] })
  const page = await open('/logs')
  await page.locator('.log').nth(4).waitFor()
  const shown = async () => (await page.locator('.log').evaluateAll((all) => all.map((each) => [...each.children].slice(1).map((cell) => cell.innerText.trim().replace(/\s+/g, ' ')).join(' | '))))
  t.match(await shown(), [/^INFO \| incoming request reqId=req-3 .*\| shop$/, 'INFO | POST /orders 500 1.23 s | shop', 'INFO | GET /users/7?a=1 200 1.23 ms | shop', /^INFO \| loading reqId=req-1 \|/, /^INFO \| Server listening \|/])
  await page.getByText('7 of 7 lines').waitFor()
  const [bad] = await rules(page)
  t.equal(await styleOf(page.locator('.log .code', { hasText: '500' })), bad)

  await page.getByRole('button', { name: 'Both lines of GET /users/7?a=1' }).click()
  t.same((await texts(page, '.log .what bdi:first-child')).filter((text) => /^(?:incoming|request)/.test(text)), ['incoming request', 'request completed', 'incoming request'])
  await page.keyboard.press('ArrowLeft')
  t.equal(await page.locator('.log').count(), 5, 'closed by the keyboard')
  await page.keyboard.press('ArrowRight')
  t.equal(await page.locator('.log').count(), 7)

  await page.getByRole('button', { name: 'Every line' }).click()
  await shows(t, () => page.getByText('request completed').count(), 2)
  t.match(await texts(page, '.log .what'), [/^incoming/, /^request completed.*responseTime=1235 ms$/, /^request completed.*responseTime=1.23 ms$/, /./, /./, /./, /./])
  t.match(page.url(), /\/logs\?every=1$/)
  await page.reload()
  await page.locator('.log').nth(6).waitFor()
  await page.getByRole('button', { name: 'Every line' }).click()
  t.match(page.url(), /\/logs$/)
  await page.waitForFunction(() => document.querySelectorAll('.log').length === 5)

  await page.locator('.log', { hasText: '/open' }).focus()
  await sendLines(url, { id: 'req-3', end: [204, 3] })
  await page.getByText('204').waitFor()
  t.match(await page.evaluate(() => document.activeElement.textContent), /GET\s*\/open\s*204/, 'the focus goes to the row that the line is now in')
})

inBrowser('a line has a panel with all its members, by mouse, by keyboard and by address', async (t, { send, open, url }) => {
  const one = request({})
  await send(one.body)
  await sendLines(url,
    { text: 'loose', members: { ratio: { doubleValue: 1.23456789 }, note: { stringValue: 'x'.repeat(20_000) } }, severity: 13 },
    { id: 'req-1', start: ['GET', '/users/7'], ...one },
    { id: 'req-1', text: 'loading', ...one },
    { id: 'req-1', end: [200, 1.234567891], ...one })
  const page = await open('/logs')
  const panel = page.locator('.panel')
  await page.locator('.log', { hasText: 'loose' }).click()
  await panel.getByText('1.23456789').waitFor()
  t.match(await panel.textContent(), /warn Log line.*shop · pino.*loose.*ratio1\.23456789.*xxx/s)
  t.equal(await panel.getByRole('link', { name: /trace/ }).count(), 0, 'a line without a trace has no link to one')
  t.match(page.url(), /\/logs\?line=1$/)
  await panel.getByRole('button', { name: 'Show more' }).click()
  await page.waitForFunction(() => document.querySelector('.panel .attributes').textContent.includes('x'.repeat(20_000)))
  await panel.locator('summary').first().focus()
  await page.keyboard.press('ArrowDown')
  t.match(page.url(), /\?line=1$/, 'the arrow keys scroll the panel if it has the focus')
  await page.locator('.log', { hasText: 'loose' }).focus()
  await page.keyboard.press('ArrowUp')
  await panel.getByText('loading').waitFor()
  t.match(page.url(), /\?line=3$/, 'the panel follows the keyboard')
  t.equal(await page.locator('.log[aria-current=true]').count(), 1)
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'hidden' })
  t.match(page.url(), /\/logs$/)
  t.match(await page.evaluate(() => document.activeElement.textContent), /loading/)
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await panel.getByText('incoming request').waitFor()
  t.match(await panel.textContent(), /Request.*Status200.*Duration1\.23 ms.*request completed.*responseTime1\.234567891.*incoming request.*\/users\/7/s, 'a folded row has the members of both lines')
  await page.reload()
  await panel.getByText('incoming request').waitFor()
  await page.getByLabel('Level').selectOption('info')
  t.match(page.url(), /level=info&line=4$/, 'a filter keeps the panel')
  await panel.getByRole('link', { name: 'Show in its trace' }).click()
  await page.waitForURL(new RegExp(`/traces/${one.traceId}\\?span=l2`))
  const gone = await open('/logs?line=99', { expectErrors: true })
  await gone.locator('.panel').getByText('not stored').waitFor()
  await gone.locator('.scroll').focus()
  await gone.keyboard.press('Escape')
  await gone.locator('.panel').waitFor({ state: 'hidden' })
})

inBrowser('hostile routes, exceptions and requests in lines stay text', async (t, { send, open, url }) => {
  for (const text of Object.values(HOSTILE)) {
    const one = request({ route: text, method: text, service: text, status: 404, exception: text })
    await send(one.body)
    await sendLines(url, { id: text, start: [text, text], ...one }, { id: text, end: [1e9, -5], ...one }, { id: text, text, members: { [text]: { stringValue: text } } })
  }
  const unhurt = async (page, what) => {
    t.equal(await page.evaluate(() => window.hacked), undefined, what)
    t.equal(await page.locator('main script, main img, main iframe, main [onerror]').count(), 0, what)
    t.same(await page.locator('main a').evaluateAll((links) => links.map((link) => link.protocol).filter((protocol) => protocol !== 'http:')), [], what)
    t.notMatch((await page.locator('main').innerText()).replace(/[\n\t]/g, ''), /[\u202a-\u202e\p{Cc}]/u, what)
  }
  const page = await open('/exceptions')
  await page.locator('summary').nth(5).waitFor()
  for (const row of await page.locator('summary').all()) await row.click()
  await unhurt(page, 'exceptions')
  await page.goto(`${url}/logs`)
  await page.locator('.log').nth(13).waitFor()
  for (let index = 0; index < 14; index++) {
    await page.locator('.log').nth(index).click()
    await page.waitForURL(new RegExp(`line=${await page.locator('.log').nth(index).getAttribute('data-order')}$`))
    await page.locator('.panel .attributes').first().waitFor()
    await unhurt(page, `line ${index}`)
  }
})

for (const [size, colorScheme] of [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]) {
  inBrowser(`axe finds nothing on these pages, and nothing is cut off: ${size}, ${colorScheme}`, async (t, { send, open, url }) => {
    await failures(send)
    const slow = request({ ms: 420, attributes: { 'light_trace.time.idle': 0.4, 'light_trace.time.busy': 0.01 } })
    await send(slow.body)
    await sendLines(url, { text: 'a line that is long enough to be cut '.repeat(9), severity: 17 }, { id: 'req-1', start: ['GET', '/users/7'], ...slow }, { id: 'req-1', text: 'loading', ...slow }, { id: 'req-1', end: [200, 1.2345], ...slow })
    const page = await open('/', { size, colorScheme })
    const views = [['routes', '/routes', 'tbody tr'], ['route', '/routes?route=GET%20/users/:id&service=shop', '.box'], ['exceptions', '/exceptions', 'summary'], ['logs', '/logs', '.log'], ['line', '/logs?line=4', '.panel .attributes'], ['lost', '/lost', 'tbody tr']]
    for (const [name, path, ready] of views) {
      await page.goto(url + path)
      await page.locator(ready).first().waitFor()
      if (name === 'exceptions') await page.locator('summary').first().click()
      if (name === 'logs') await page.locator('.log-row button').first().click()
      if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/${name}-${size}-${colorScheme}.png` })
      t.same(await problemsOf(page), [], name)
      t.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth && document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth), `${name} does not scroll sideways`)
    }
  })
}
