'use strict'

// The page as a file, and how it formats texts. Its behaviour in a browser: npm run test:suite -- viewer.

const { readFileSync } = require('node:fs')
const path = require('node:path')
const { test } = require('tap')
const { buildPage, PAGE } = require('../../scripts/viewer-page')
const { startViewer, traceId } = require('./support')

const BYTES_MAX = 180_000 // a quarter of it draws charts (uPlot and chart.mjs), map and statistics
const text = import('../../viewer/page/text.mjs')

test('the page is the one that its parts build', async (t) => {
  t.ok(readFileSync(PAGE, 'utf8') === await buildPage(), 'run npm run build:viewer')
})

test('the page is one small file that loads nothing else', async (t) => {
  const html = readFileSync(PAGE, 'utf8')
  t.ok(Buffer.byteLength(html) <= BYTES_MAX, `${Buffer.byteLength(html)} bytes of ${BYTES_MAX}`)
  t.notMatch(html, /<(?:script|link|img|iframe)[^>]+(?:src|href)="?(?!data:)[\w/.]/i, 'no file beside it')
  t.notMatch(html, /\.innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, 'nothing turns text into markup or code')
})

test('the policy of the page allows its own script and style only', async (t) => {
  const { get } = await startViewer(t)
  const policy = (await get('/')).headers.get('content-security-policy')
  t.match(policy, /default-src 'none'/)
  t.match(policy, /script-src 'sha256-[\w+/]{43}='(?:;|$)/)
  t.match(policy, /style-src 'sha256-[\w+/]{43}='(?:;|$)/)
  t.notMatch(policy, /unsafe/)
})

test('the page of a trace contains its first rows, as data that cannot become markup', async (t) => {
  const { get, json, send } = await startViewer(t)
  const rowsIn = (html) => /<script type="application\/json" id="rows">([^<]*)<\/script>\n<\/body>/.exec(html)?.[1]
  await send([{ id: 1, ms: 500, name: '</script><script>alert(1)</script><!-- \u2028' }])
  await send(Array.from({ length: 200 }, (_, index) => ({ id: index + 2, parent: 1, at: index, ms: 1 })))
  const response = await get(`/traces/${traceId(1)}`)
  const html = await response.text()
  t.same(JSON.parse(rowsIn(html)), await json(`/api/traces/${traceId(1)}/rows?limit=150`))
  t.equal(JSON.parse(rowsIn(html)).more, 51)
  t.equal(html.match(/<script/g).length, 2, 'its own script, and the data')
  t.ok(html.replace(/<script type="application\/json"[^<]*<\/script>\n/, '') === readFileSync(PAGE, 'utf8'), 'the rest is the same for all')
  t.equal(response.headers.get('content-security-policy'), (await get('/')).headers.get('content-security-policy'), 'and so is the policy')
  t.ok(rowsIn(await (await get('/traces/last')).text()), 'also by another name')
  for (const path of ['/', '/routes', `/traces/${traceId(2)}`, '/traces/%3C', `/traces/${traceId(1)}/spans`]) t.ok(await (await get(path)).text() === readFileSync(PAGE, 'utf8'), path)
})

test('a page is sent without its rows if they cannot be made', async (t) => {
  const { viewer, get, send } = await startViewer(t)
  await send([{}])
  viewer.api.firstRows = () => { throw new Error('broken') }
  t.ok(await (await get('/traces/last')).text() === readFileSync(PAGE, 'utf8'))
})

test('each reason for which an app drops spans has an explanation', async (t) => {
  const { APP_REASONS } = await import('../../viewer/page/lost.mjs')
  const page = readFileSync(path.join(__dirname, '..', '..', 'docs', 'reliability.md'), 'utf8')
  const [table] = /\| `dropped` \| why \|\n(?:\|.*\n)+/.exec(page)
  const ofSpans = [...table.matchAll(/^\| `(\w+)` \| (?!why|Log records only)/gm)].map(([, reason]) => reason)
  t.ok(ofSpans.length > 6)
  t.same(Object.keys(APP_REASONS).sort(), [...ofSpans, 'thinned'].sort())
})

test('the digits of numbers are in groups of three', async (t) => {
  const { count } = await text
  t.same([0, 999, 1000, 10_000, 123_456.7, 1_234_567, -1234, NaN].map(count), ['0', '999', '1\u202f000', '10\u202f000', '123\u202f457', '1\u202f234\u202f567', '-1\u202f234', '–'])
})

test('hidden characters of a text are made visible', async (t) => {
  const { line, block } = await text
  t.equal(line('user\u202etxt.exe'), 'user⟨U+202E⟩txt.exe')
  t.equal(line('bell\u0007'), 'bell⟨U+0007⟩')
  t.equal(line('zero\u200bwidth'), 'zero⟨U+200B⟩width')
  t.equal(line('half \ud83d of a pair'), 'half \ufffd of a pair')
  t.equal(line('tag \u{e0041}'), 'tag ⟨U+E0041⟩')
  t.equal(line('one\ntwo\tthree'), 'one↵two⇥three')
  t.equal(line('family 👩‍👧 می‌خواهم'), 'family 👩‍👧 می‌خواهم', 'joiners belong to the text')
  t.same(block('one\ntwo\tthree\u001b[31m'), { text: 'one\ntwo\tthree⟨U+001B⟩[31m', left: 0 })
})

test('long texts are cut and marked', async (t) => {
  const { line, block } = await text
  t.equal(line('x'.repeat(1000), 10), 'xxxxxxxxxx…')
  t.same(block('x'.repeat(1000), 10), { text: 'xxxxxxxxxx', left: 990 })
  t.equal(line('ab😀', 3), 'ab\ufffd…', 'a pair that is cut is no pair')
})

test('durations have three digits and a unit', async (t) => {
  const { duration, short } = await text
  const shown = [0, 0.0005, 0.25, 0.9999, 1, 9.994, 9.996, 57.31, 999.4, 999.7, 1500, 61_000, 3 * 3_600_000, -2000, NaN].map(duration)
  t.same(shown, ['0', '0.50 µs', '250 µs', '1.00 ms', '1.00 ms', '9.99 ms', '10.0 ms', '57.3 ms', '999 ms', '1.00 s', '1.50 s', '1 m 1 s', '3 h 0 m', '−2.00 s', '–'])
  t.same([1, 10, 200, 1000, 2500, 0.5].map(short), ['1 ms', '10 ms', '200 ms', '1 s', '2.5 s', '500 µs'])
})

test('values of metrics are shown in their unit', async (t) => {
  const { quantity, trimmed } = await text
  const shown = [[0.25, 's'], [12, 'ms'], [250, 'us'], [1500, 'By'], [2, 'MiBy'], [3e9, 'By'], [-1500, 'By'], [12.3456, '{request}'], [0.5, '1'], [7, 'bananas'], [0, ''], [1234.5, ''], [0.00002, ''], [NaN, 's']]
  t.same(shown.map(([value, unit]) => quantity(value, unit)), ['250 ms', '12.0 ms', '250 µs', '1.5 kB', '2.1 MB', '3.00 GB', '−1.5 kB', '12.3', '0.50', '7 bananas', '0', '1\u202f235', '2.0e-5', '–'])
  t.equal(quantity(1, '\u202eunit'), '1 ⟨U+202E⟩unit', 'a unit is a text of the sender')
  t.same(['12.0 ms', '1.50 kB', '0.50', '100', '2 m 0 s'].map(trimmed), ['12 ms', '1.5 kB', '0.5', '100', '2 m 0 s'])
})
