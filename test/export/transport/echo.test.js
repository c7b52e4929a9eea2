'use strict'

// A collector that repeats the data that was sent to it. Neither the log nor stats() quotes it.

const { test } = require('tap')
const { tracedApp } = require('../../support/traced-app')
const { startSink } = require('../../support/otlp-sink')

const KEY = 'k3y-5ecret-0123456789'
const ODD = '\\k3y/"5ecret"+%41\u00e9\\' // JSON and URLs escape these characters
const inJson = JSON.stringify(ODD).slice(1, -1)
const SECRET = /k3y|5.?ecret|p4ss|p4 s/i
const text = (body) => ({ status: 400, headers: { 'content-type': 'text/plain' }, body })
const status = (message) => ({ // google.rpc.Status { 2: message }
  status: 400,
  headers: { 'content-type': 'application/x-protobuf' },
  body: Buffer.concat([Buffer.from([0x12, Buffer.byteLength(message)]), Buffer.from(message)])
})
const rejection = (errorMessage) => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ partialSuccess: { rejectedSpans: 1, errorMessage } })
})
const cutBy = (control) => `not for ${KEY.slice(0, 5)}${control}${KEY.slice(5)}`
const escapedAll = (escape) => [...ODD].map((char) => escape(char.charCodeAt(0).toString(16))).join('')
const ANSWERS = {
  'a 401 in plain text': { status: 401, headers: { 'content-type': 'text/plain' }, body: `invalid key ${KEY}` },
  'a 400 in JSON': { status: 400, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ message: `unknown Bearer ${KEY}` }) },
  'a 403 with the password of the URL': { status: 403, headers: { 'content-type': 'text/plain' }, body: 'wrong: p4ssword-of-url' },
  'a value in JSON': text(`{"message":"bad header ${inJson}"}`),
  'a value in JSON, as PHP writes it': text(`{"message":"bad header ${inJson.replaceAll('/', '\\/').replace('\u00e9', '\\u00e9')}"}`),
  'a value in JSON, as Go writes it': text(`{"message":"bad header ${escapedAll((hex) => `\\u${hex.padStart(4, '0')}`)}"}`),
  'a value in JSON in JSON': text(JSON.stringify({ message: JSON.stringify({ header: ODD }) })),
  'a value as URLs have it': text(`at /v1/traces?key=${encodeURIComponent(ODD)}`),
  'a value as URLs have it, in JSON': text(JSON.stringify({ message: `at /v1/traces?key=${encodeURIComponent(ODD)}` })),
  'a value in JSON, in a URL': text(encodeURIComponent(JSON.stringify({ key: ODD }))),
  'a value in latin1': text(Buffer.from(`bad header ${ODD}`, 'latin1')),
  'the query as it was sent': text('at /v1/traces?q=k3y%2D5+ecret'),
  'the query as it is read': text('wrong key k3y-5 ecret'),
  'a short password of the URL': text('wrong user user2, wrong password: p4 s;=s:ab,c'),
  'a partial success': rejection(`not for ${KEY}`),
  'a value in other case': text(`not for ${KEY.toUpperCase()}`),
  'a value in part': text(`not for ${KEY.slice(0, 12)}...`),
  'a value in base64': text(`not for ${Buffer.from(KEY).toString('base64')}`),
  'a value in base64 of JSON': text(`not for ${Buffer.from(`{"a":"${KEY}"}`).toString('base64url')}`),
  'a value as hexadecimal': text(`not for <Buffer ${Buffer.from(KEY).toString('hex').replaceAll(/../g, '$& ')}>`),
  'a value as JSON of a Buffer': text(JSON.stringify(Buffer.from(KEY))),
  'a value as Python writes bytes': text([...KEY].map((char) => `\\x${char.charCodeAt(0).toString(16)}`).join('')),
  'a value in HTML, by number': text([...KEY].map((char) => `&#${char.charCodeAt(0)};`).join('')),
  'a value in HTML, by hexadecimal number': text([...KEY].map((char) => `&#x${char.charCodeAt(0).toString(16)};`).join('')),
  'a value in HTML in JSON': text(JSON.stringify({ message: ODD.replaceAll('"', '&quot;').replaceAll('+', '&#43;').replaceAll('e', '&#101;') })),
  'a value in UTF-16': text(Buffer.from(`not for ${KEY}`, 'utf16le')),
  'a value at the end of what is quoted': text(`${'not for '.repeat(31)}${KEY}`)
}
for (const control of ['\0', '\x1b', '\x1b[31m', '\x07', '\x7f', '\u202e', '\ufeff', '\u200b', '\n']) {
  const at = `a value with U+${control.charCodeAt(0).toString(16)}${control.slice(1)} in it`
  ANSWERS[`${at}, in plain text`] = text(cutBy(control))
  ANSWERS[`${at}, in a status`] = status(cutBy(control))
  ANSWERS[`${at}, in a partial success`] = rejection(cutBy(control))
}

for (const [name, answer] of Object.entries(ANSWERS)) {
  const password = name.includes('short') ? 'p4%20s%3B%3Ds%3Aab%2Cc' : 'p4ssword-of-url'
  test(`${name} is quoted without the values that were sent`, async (t) => {
    const sink = await startSink(t)
    sink.respond = () => answer
    const lines = []
    const stream = { write: (line) => lines.push(line) }
    const url = `${sink.url.replace('http://', `http://user2:${password}@`)}?q=k3y%2D5+ecret`
    const { app } = await tracedApp(t, {
      fastify: { logger: { level: 'warn', stream } },
      trace: { spanProcessors: undefined, exporter: { url, headers: { 'x-api-key': `Bearer ${KEY}`, 'x-odd': ODD } } }
    })
    await app.inject('/')
    await app.lightTrace.flush()
    const said = lines.join('') + JSON.stringify(app.lightTrace.stats())
    t.match(said, /\*{8}|not quoted/)
    t.notMatch(said, SECRET)
    t.notMatch(unescaped(unescaped(said)), SECRET)
    for (const encoding of ['base64', 'hex']) t.notMatch(said.replaceAll(' ', ''), Buffer.from(KEY).toString(encoding).slice(0, 12))
    t.notMatch(said, /107,51,121|&#101|&#x65/)
  })
}

function unescaped (text) {
  return text.replaceAll(/\\+u([0-9a-f]{4})|%([0-9a-f]{2})/gi, (escape, unit, byte) => String.fromCharCode(parseInt(unit ?? byte, 16)))
}

test('text that only resembles a secret is quoted', async (t) => {
  const sink = await startSink(t)
  const message = 'missing Bearer token: the tenant "team-a" has reached the limit of 123456 spans a second'
  sink.respond = () => text(message)
  const { app } = await tracedApp(t, {
    trace: { spanProcessors: undefined, exporter: { url: sink.url, headers: { authorization: `Bearer ${KEY}`, 'x-note': 'a limit, or two' } } }
  })
  await app.inject('/')
  await app.lightTrace.flush()
  t.match(app.lightTrace.stats().lastError, message)
})
