'use strict'

// The pictures of the docs. npm run docs:pictures writes them into docs/images. This test makes them only to check that this works and that
// they are small.

const { statSync } = require('node:fs')
const { join } = require('node:path')
const { inBrowser } = require('./support/browser')
const traces = require('./support/otlp-traces')

const SUM_MAX = 400_000
const SLOW_ORDER = { method: 'POST', route: '/orders', path: () => '/orders', base: 46 }

inBrowser('the pictures of the docs can be made, and are small', async (t, { send, open, url }) => {
  const directory = process.env.LIGHT_TRACE_PICTURES ?? t.testdir({})
  const made = traces.ids(5)
  const traceId = made.trace()
  await send(...traces.shop({ count: 180, seed: 12, everyMs: 700 }), traces.request({ made, traceId, route: SLOW_ORDER, fail: false, slow: 1 }))
  const [failed] = (await (await fetch(`${url}/api/traces?status=error&route=POST%20/orders`)).json()).traces
  const sizes = []
  const picture = async (name, { width, height, colorScheme = 'light', size }, path, prepare = () => {}) => {
    const page = await open(path, { colorScheme, size })
    await page.setViewportSize({ width, height })
    await page.locator('.row, tbody tr').nth(3).waitFor()
    await page.locator('#state.live').waitFor()
    await prepare(page)
    const file = join(directory, `viewer-${name}.png`)
    await page.screenshot({ path: file, animations: 'disabled' })
    sizes.push(statSync(file).size)
  }
  await picture('requests', { width: 1120, height: 560 }, '/')
  await picture('trace', { width: 1120, height: 560 }, `/traces/${traceId}`)
  await picture('failed', { width: 1120, height: 640, colorScheme: 'dark' }, `/traces/${failed.id}`, async (page) => {
    await page.keyboard.press('E')
    await page.keyboard.press('Enter')
    await page.locator('.panel h2').waitFor()
  })
  await picture('routes', { width: 1120, height: 400 }, '/routes')
  await picture('narrow', { width: 360, height: 640, size: 'narrow', colorScheme: 'dark' }, '/')
  t.equal(sizes.length, 5)
  t.ok(sizes.every((size) => size > 5000))
  t.ok(sizes.reduce((sum, size) => sum + size, 0) <= SUM_MAX, `${sizes} bytes`)
})
