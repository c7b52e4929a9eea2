'use strict'

// Data that no correct sender writes. Every view shows it, as text and within limits.

const { boxOf, inBrowser, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const { HOSTILE } = traces

async function unhurt (t, page, what) {
  t.equal(await page.evaluate(() => window.hacked), undefined, `${what}: no text became a script`)
  t.equal(await page.locator('main script, main img, main iframe, main style, main [onerror]').count(), 0, `${what}: no text became markup`)
  t.same(await page.locator('main a').evaluateAll((links) => links.map((link) => link.protocol).filter((protocol) => protocol !== 'http:')), [], `${what}: no text became a link`)
  t.notMatch(await page.locator('main').innerText().then((text) => text.replace(/[\n\t]/g, '')), /[\u202a-\u202e\p{Cc}]/u, `${what}: no control or direction character has an effect`)
}

inBrowser('scripts, addresses, control characters and direction characters are shown as text', async (t, { send, open }) => {
  const { traceId, root, body } = traces.hostile()
  await send(body)
  const page = await open('/')
  await page.locator('.row.failed').waitFor()
  t.match(await page.locator('.row.failed').textContent(), HOSTILE.script)
  await unhurt(t, page, 'requests')
  for (const path of ['/routes', `/routes?route=${encodeURIComponent(`GET ${HOSTILE.script}`)}`, '/exceptions', '/lost']) {
    await page.goto(new URL(path, page.url()).href)
    await page.locator('.scroll').getByText(/script|Spans received/).first().waitFor()
    await unhurt(t, page, path)
  }
  await page.goto(new URL(`/traces/${traceId}`, page.url()).href)
  await page.locator('.fall .row').nth(7).waitFor()
  t.match(await texts(page, '.fall .label'), [/^GET <script>/, /^script: <script>/, /^url: javascript:/, /bell⟨U\+0007⟩/, /user⟨U\+202E⟩txt\.exe/, /half \ufffd of a pair/, /one↵two/, /^wide/])
  for (let nth = 1; nth < 8; nth++) {
    await page.locator('.fall .row').nth(nth).click()
    await page.locator('.panel h2').getByText(Object.keys(HOSTILE)[nth - 1] + ':').waitFor()
    while (await page.locator('.panel details:not([open]) summary').count() > 0) await page.locator('.panel details:not([open]) summary').first().click()
    await unhurt(t, page, Object.keys(HOSTILE)[nth - 1])
  }
  await page.goto(new URL(`/compare?a=${traceId}&b=${traceId}`, page.url()).href)
  await page.locator('.compare .row').first().waitFor()
  await unhurt(t, page, 'compare')

  await page.goto(new URL(`/traces/${traceId}?span=${root}`, page.url()).href)
  const row = page.locator('.panel tr', { has: page.getByText('long', { exact: true }) })
  await row.waitFor()
  t.ok((await row.textContent()).length < 3000, 'ten megabytes are cut')
  await row.getByRole('button', { name: 'Show more' }).click()
  await row.getByText('9 800 000 more characters are not shown').or(row.getByText('more characters are not shown')).waitFor()
  t.ok((await row.textContent()).length < 250_000, 'the expanded text is cut, too')
})

inBrowser('a cycle of ids, a duplicate id and a span that is its own parent are shown', async (t, { send, open }) => {
  const { traceId, body } = traces.circle()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(3).waitFor()
  const names = await texts(page, '.fall .label')
  for (const name of ['first', 'second', 'third', 'its own parent']) t.equal(names.filter((each) => each === name).length, 1, name)
  t.ok(await page.locator('.flag', { hasText: 'cycle' }).count() >= 1)
  for (let nth = 0; nth < names.length + 2; nth++) await page.keyboard.press('ArrowDown')
  for (let nth = 0; nth < names.length + 2; nth++) await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Enter')
  await page.locator('.panel h2').waitFor()
})

inBrowser('a clock that is three hours off is corrected, and a span that ends before it starts is shown', async (t, { send, open }) => {
  const { traceId, body } = traces.clockOff()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(3).waitFor()
  t.match(await page.locator('.flag').allTextContents(), ['clock +3 h 0 m'])
  t.match(await page.locator('.facts').textContent(), 'Duration80.0 ms')
  const [call, there] = await Promise.all([1, 2].map((nth) => boxOf(page.locator('.fall .row .bar').nth(nth))))
  t.ok(there.x >= call.x && there.x + there.width <= call.x + call.width + 1, 'it is drawn inside its caller')
  await page.locator('.fall .row').nth(2).click()
  await page.locator('.panel').getByText('the clock of this service differs').waitFor()
})

inBrowser('requests that begin decades ago or end in decades are shown', async (t, { send, open }) => {
  const made = traces.ids(71)
  const [a, b] = [made.trace(), made.trace()]
  await send(traces.otlp({
    far: [
      traces.span({ traceId: a, id: made.span(), name: 'since 1970', kind: 'SERVER', start: 1, ms: Date.now() }),
      traces.span({ traceId: b, id: made.span(), name: 'until 2200', kind: 'SERVER', start: Date.now(), ms: 5e12 })
    ]
  }))
  const page = await open('/')
  await page.locator('.row').nth(1).waitFor()
  for (const traceId of [a, b]) {
    await page.goto(new URL(`/traces/${traceId}`, page.url()).href)
    await page.locator('.fall .row').waitFor()
    t.ok(await page.locator('.tick').count() <= 12)
  }
})

inBrowser('a trace of three thousand levels is shown to its last level', async (t, { send, open }) => {
  const { traceId, body } = traces.deepTrace()
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(10).waitFor()
  await page.keyboard.press('End')
  await page.locator('.row[aria-level="3000"]').waitFor()
  const { width } = await boxOf(page.locator('.row[aria-level="3000"] .label'))
  t.ok(width > 50, 'the name is still visible')
})

inBrowser('forty thousand traces of one span each do not overload an open page', async (t, { send, open }) => {
  const made = traces.ids(81)
  const page = await open('/')
  await page.getByText('Waiting for the first request').waitFor()
  const one = (index) => traces.span({ traceId: made.trace(), id: made.span(), name: `GET /${index % 50}`, kind: 'SERVER', start: Date.now(), ms: 1, attributes: { 'http.request.method': 'GET', 'http.route': `/${index % 50}`, 'http.response.status_code': 200 } })
  for (let batch = 0; batch < 8; batch++) await send(traces.otlp({ load: Array.from({ length: 5000 }, (_, index) => one(index)) }))
  await page.waitForFunction(() => /\d/.test(document.getElementById('foot').textContent) && document.querySelectorAll('.row').length > 10)
  t.ok(Number(await page.locator('.grid').getAttribute('aria-rowcount')) <= 5002, 'the page keeps a limited number of rows')
  t.ok(await page.locator('.row').count() < 60)
  await page.keyboard.press('2')
  await page.locator('tbody tr').nth(20).waitFor()
  t.match(await page.locator('h1').textContent(), 'Routes', 'the page still responds')
})
