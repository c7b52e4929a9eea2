'use strict'

// Conditions as chips, the overview of requests over time, and the time interval that narrows every page.

const { problemsOf } = require('./support/axe')
const { boxOf, inBrowser, rows, texts } = require('./support/browser')
const { sendLogs } = require('./support/otlp-logs')
const traces = require('./support/otlp-traces')

const SECOND = 1000
const MOMENT = String.raw`(?:\d{4}-\d\d-\d\d )?\d\d:` // with the date, if it was before midnight
const HOSTILE = '<img src=x onerror="window.hacked=1"> \\ \u202e名前'

const made = traces.ids(45)
let now

function request ({ secondsAgo, tenant = 'a', route = '/a', failed = false, ms = 5, ...attributes }) {
  const traceId = made.trace()
  return traces.otlp({
    shop: [traces.span({
      traceId,
      id: made.span(),
      name: `GET ${route}`,
      kind: 'SERVER',
      start: now - secondsAgo * SECOND,
      ms,
      error: failed ? 'no stock' : undefined,
      attributes: { 'http.request.method': 'GET', 'http.route': route, 'url.path': route, 'http.response.status_code': failed ? 500 : 200, 'tenant.id': tenant, ...attributes }
    })]
  })
}

/** Twenty requests in the last 200 seconds: those of the first half are of tenant a and route /a, the others of tenant b and route /b. */
async function shop ({ send, url }) {
  now = Date.now()
  for (let n = 0; n < 20; n++) await send(request({ secondsAgo: 200 - n * 10, tenant: n < 10 ? 'a' : 'b', route: n < 10 ? '/a' : '/b', failed: n % 10 === 3, ms: n < 18 ? 5 : 300 }))
  await sendLogs(url, ...Array.from({ length: 4 }, (_, n) => ({ at: now - 190 * SECOND + n * 50 * SECOND, text: `line ${n}`, severity: n === 3 ? 17 : 9, attributes: { 'tenant.id': n < 2 ? 'a' : 'b' } })))
}

const listed = (page, count) => page.waitForFunction((count) => document.querySelectorAll('.requests .row:not(.group)').length === count, count)
const lines = (page, count) => page.waitForFunction((count) => document.querySelectorAll('.log').length === count, count)
const chips = (page) => texts(page, '.chip')
const search = (page) => page.url().split('?')[1] ?? ''

async function type (page, text) {
  await page.locator('#search').focus()
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

async function plotOf (page) {
  const plot = page.locator('.overview .u-over')
  await plot.waitFor()
  return boxOf(plot)
}

inBrowser('a typed condition becomes a chip: by keyboard, in the address, for requests and for log lines', async (t, viewer) => {
  await shop(viewer)
  const page = await viewer.open('/')
  await listed(page, 20)
  await type(page, 'tenant.id != a')
  await listed(page, 10)
  t.same(await chips(page), ['tenant.id != a'])
  t.equal(search(page), 'where=tenant.id+%21%3D+a')
  await type(page, 'duration > 0.1s')
  await listed(page, 2)
  await page.reload()
  await listed(page, 2)
  t.same(await chips(page), ['tenant.id != a', 'duration > 0.1s'])
  await page.getByRole('button', { name: 'Remove tenant.id != a' }).click()
  await listed(page, 2)
  t.ok(await page.evaluate(() => document.activeElement.id === 'search'), 'the focus stays in the filter')
  await page.keyboard.press('Backspace')
  await listed(page, 20)
  t.equal(await page.locator('#search').inputValue(), 'duration > 0.1s', 'Backspace makes the last chip text again')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('error')
  await page.keyboard.press('Enter')
  await listed(page, 2)
  t.same(await chips(page), ['error'])
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await listed(page, 20)
  t.equal(search(page), '')
  await page.getByLabel('Duration', { exact: true }).selectOption('100')
  await listed(page, 2)
  t.match([search(page), await chips(page)], ['where=duration+%3E%3D+100ms', []])
  await page.reload()
  await listed(page, 2)
  t.equal(await page.getByLabel('Duration', { exact: true }).inputValue(), '100')

  await page.keyboard.press('4')
  await lines(page, 4)
  await type(page, 'tenant.id = a')
  await lines(page, 2)
  await type(page, 'level >= error')
  await page.getByText('No match.').waitFor()
  t.same(await chips(page), ['tenant.id = a', 'level >= error'])
  await page.reload()
  await page.getByText('No match.').waitFor()
  await page.getByRole('button', { name: 'Remove tenant.id = a' }).click()
  await lines(page, 1)
  t.equal(search(page), 'where=level+%3E%3D+error')
})

inBrowser('the field explains conditions, says what is wrong with one, and searches other text', async (t, viewer) => {
  await shop(viewer)
  const page = await viewer.open('/')
  await listed(page, 20)
  await page.keyboard.press('/')
  await page.locator('.hint').getByText('duration > 100ms').waitFor()
  await page.keyboard.insertText('duration > fast') // at once: a pause after a word would search for it
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('duration is compared with a time').waitFor()
  t.equal(await page.locator('#search').getAttribute('aria-invalid'), '')
  t.same(await chips(page), [])
  t.equal((await rows(page)).length, 22, 'the list stays')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('no stock')
  await page.keyboard.press('Enter')
  await listed(page, 2)
  t.same([search(page), await chips(page)], ['q=no+stock', []])
  await page.locator('.hint .bad').waitFor({ state: 'detached' })
})

inBrowser('the = beside an attribute in the panel makes a chip', async (t, viewer) => {
  now = Date.now()
  await viewer.send(request({ secondsAgo: 5, note: HOSTILE, 'a:b = "c"': 'say "hi"' }), request({ secondsAgo: 4 }))
  const { traces: [, { id }] } = await (await fetch(`${viewer.url}/api/traces`)).json()
  for (const [key, label] of [['note', 'note = "<img src=x onerror=\\"window.hacked=1\\"> \\\\ \u202e名前"'], ['a:b = "c"', '"a:b = \\"c\\"" = say "hi"']]) {
    const page = await viewer.open(`/traces/${id}`)
    await page.locator('.fall .row').first().click()
    const row = page.locator('.panel tr', { has: page.locator('th', { hasText: key }) })
    await row.hover()
    await row.locator('.filter-by').click()
    await listed(page, 1)
    t.same(await chips(page), [label.replace('\u202e', '⟨U+202E⟩')])
    await page.reload()
    await listed(page, 1)
    t.equal(await page.evaluate(() => window.hacked), undefined)
  }
})

inBrowser('an interval is brushed with the mouse, narrows every page and is in every address', async (t, viewer) => {
  await shop(viewer)
  const page = await viewer.open('/')
  await listed(page, 20)
  const { x, y, width, height } = await plotOf(page)
  await page.mouse.move(x + width * 0.55, y + height / 2)
  await page.mouse.down()
  await page.mouse.move(x + width * 0.8, y + height / 2, { steps: 4 })
  await page.mouse.move(x + width + 20, y + height / 2, { steps: 2 })
  await page.mouse.up()
  await page.waitForURL(/\?from=\d+&to=\d+$/)
  await page.waitForFunction(() => /^(?:8|9|10|11) requests/.test(document.querySelector('main .tools .quiet')?.textContent))
  const narrowed = search(page)
  const held = await page.locator('.requests .row:not(.group)').count()
  await page.getByRole('button', { name: new RegExp(`^Time interval: ${MOMENT}`) }).waitFor()

  await page.keyboard.press('2')
  await page.locator('tbody tr').first().waitFor()
  t.equal(search(page), narrowed, 'routes')
  t.match(await texts(page, 'tbody th'), [/\/b$/])
  await page.getByRole('link', { name: 'Exceptions' }).click()
  await page.locator('.exception-row').waitFor()
  t.equal(search(page), narrowed, 'exceptions')
  t.match(await page.locator('.exception-row').textContent(), /^1 request/)
  await page.keyboard.press('4')
  await lines(page, 2)
  t.equal(search(page), narrowed, 'logs')
  await page.reload()
  await lines(page, 2)
  await page.keyboard.press('1')
  await listed(page, held)
  await page.locator('.requests .row:not(.group)').first().click()
  await page.locator('.fall .row').first().waitFor()
  t.equal(search(page), '', 'a request has no interval')
  t.equal(await page.locator('#interval').isVisible(), false)
  await page.getByRole('link', { name: 'Requests', exact: true }).click()
  await listed(page, held)
  t.equal(search(page), narrowed, 'but keeps it for the way back')
  await type(page, 'error')
  await listed(page, 1)
  t.equal(search(page), `where=error&${narrowed}`)
  await page.getByRole('button', { name: 'Show all' }).click()
  await listed(page, 2)
  t.equal(search(page), 'where=error', 'the other filters stay')
  await page.goBack()
  await listed(page, 1)
})

inBrowser('an interval is chosen by keyboard, and by touch', async (t, viewer) => {
  await shop(viewer)
  const page = await viewer.open('/')
  await listed(page, 20)
  await plotOf(page)
  await page.getByRole('slider', { name: 'Requests over time' }).focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+ArrowRight')
  await page.keyboard.press('Shift+ArrowRight')
  await page.keyboard.press('Enter')
  await listed(page, 3)
  t.equal(await page.evaluate(() => document.activeElement.id), 'interval', 'the focus is on the interval')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Time interval' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Time interval' }).waitFor({ state: 'hidden' })
  t.match(search(page), /^from=/, 'Escape closes only the menu')

  const touch = await viewer.open('/', { size: 'narrow' })
  await touch.locator('.requests .row').first().waitFor()
  const { x, y, width, height } = await plotOf(touch)
  const client = await touch.context().newCDPSession(touch)
  const at = (share) => [{ x: Math.round(x + width * share), y: Math.round(y + height / 2) }]
  await client.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at(0.2) })
  for (const share of [0.3, 0.5, 0.7]) await client.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: at(share) })
  await client.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  await touch.waitForURL(/\?from=\d+&to=\d+$/)
  await touch.waitForFunction(() => /^(?:8|9|1\d) requests/.test(document.querySelector('main .tools .quiet')?.textContent))
})

inBrowser('the control: the last minutes, times of one\'s own, and what an address gives', async (t, viewer) => {
  await shop(viewer)
  await viewer.send(request({ secondsAgo: 3000 }))
  const page = await viewer.open('/')
  await listed(page, 21)
  await page.getByRole('button', { name: 'Time interval: All time' }).click()
  await page.getByRole('button', { name: 'Last 15 min' }).click()
  await listed(page, 20)
  t.equal(search(page), 'last=15m')
  await viewer.send(request({ secondsAgo: 2000 }), request({ secondsAgo: 1 }))
  await listed(page, 21)
  t.notMatch((await rows(page)).join(), /2000/)
  await page.getByRole('button', { name: 'Time interval: Last 15 min' }).click()
  const local = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
  await page.getByLabel('From', { exact: true }).fill(local(now - 100 * SECOND))
  await page.getByLabel('To', { exact: true }).fill(local(now - 200 * SECOND))
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('alert').getByText('must not be later').waitFor()
  await page.getByLabel('To', { exact: true }).fill('')
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.waitForURL(/\?from=\d+$/)
  await page.getByRole('button', { name: new RegExp(`^Time interval: From ${MOMENT}`) }).click()
  await page.getByRole('button', { name: 'All time' }).click()
  await listed(page, 23)
  t.equal(search(page), '')
  for (const [given, name] of [['last=90s', 'Last 90 s'], ['last=05m', 'Last 5 min'], ['last=000m', 'All time'], ['last=soon', 'All time'], ['from=9&to=5', 'All time'], ['from=<b>', 'All time'], ['to=0', 'Until 1970-01-01 00:00:00'], ['from=999999999999999', /^From (?:\d|–)/]]) {
    await page.goto(`${viewer.url}/routes?${given}`)
    await page.getByRole('button', { name: typeof name === 'string' ? `Time interval: ${name}` : /^Time interval: From/ }).waitFor()
  }
})

inBrowser('the overview has its numbers in a table, counts what arrives, and is not there before the first request', async (t, viewer) => {
  const page = await viewer.open('/')
  await page.getByText('Waiting for the first request').waitFor()
  t.equal(await page.locator('.overview').isVisible(), false)
  await shop(viewer)
  await plotOf(page)
  await page.locator('.overview summary').click()
  const table = page.getByRole('table', { name: 'Requests over time' })
  await table.waitFor()
  const sums = () => table.locator('tbody tr').evaluateAll((trs) => [1, 2].map((column) => trs.reduce((sum, tr) => sum + (Number(tr.children[column].textContent) || 0), 0)))
  const until = async (wanted) => {
    while (String(await sums()) !== String(wanted)) await page.evaluate(() => new Promise((resolve) => window.requestAnimationFrame(resolve)))
  }
  await until([20, 2])
  await viewer.send(request({ secondsAgo: 1, failed: true }))
  await until([21, 3])
  await type(page, 'tenant.id = a')
  await until([11, 2])
  t.pass('with the filter of the page')
})

for (const [size, colorScheme] of [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]) {
  inBrowser(`axe finds nothing, and nothing is cut off: ${size}, ${colorScheme}`, async (t, viewer) => {
    await shop(viewer)
    const page = await viewer.open(`/?last=1h&where=${encodeURIComponent('tenant.id != x')}&where=error`, { size, colorScheme })
    await plotOf(page)
    await page.locator('.overview summary').click()
    await page.keyboard.press('/')
    const fits = async (what) => {
      t.same(await problemsOf(page), [], what)
      t.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${what} does not scroll sideways`)
      t.ok(await page.evaluate(() => document.getElementById('top').scrollWidth <= document.getElementById('top').clientWidth), `${what}: nor does the bar`)
      if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/time-${what}-${size}-${colorScheme}.png` })
    }
    await fits('requests')
    await page.getByRole('button', { name: /^Time interval/ }).click()
    await fits('interval')
    await page.keyboard.press('Escape')
    await page.keyboard.press('4')
    await type(page, 'tenant.id = a')
    await lines(page, 2)
    await fits('logs')
  })
}

inBrowser('very long and hostile conditions are shown as text', async (t, { send, url, open }) => {
  await shop({ send, url })
  const page = await open('/')
  await listed(page, 20)
  await type(page, `note != "${HOSTILE.replace(/\\/g, '\\\\').replace(/"/g, '\\"')}"`)
  await listed(page, 20)
  await type(page, `tenant.id ~ ${'(a+)+'.repeat(50)}`)
  await page.getByText(/No match in/).waitFor()
  t.equal(await page.evaluate(() => window.hacked), undefined)
  t.ok((await chips(page)).every((text) => text.length < 100))
  t.ok(await page.evaluate(() => document.documentElement.scrollWidth === document.documentElement.clientWidth))
  await type(page, `a = ${'x'.repeat(600)}`)
  await page.getByRole('alert').getByText('must have at most 500 characters').waitFor()
  t.equal((await chips(page)).length, 2)
  const wrong = await open(`/?where=${encodeURIComponent('= <b>x</b>')}`, { expectErrors: true })
  await wrong.getByText('where: must be a condition').waitFor()
  await wrong.getByRole('button', { name: /^Remove/ }).click()
  await listed(wrong, 20)
})
