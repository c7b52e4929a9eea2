'use strict'

// http.request.resend_count, for undici's interceptors if their handlers are readable. Each attempt always has its own span.

const { test } = require('tap')
const { serving } = require('../support/serving')
const { upstream } = require('../support/upstream')

const [major] = process.versions.node.split('.').map(Number)

/** Fails twice or redirects twice, and then answers. */
async function target (t) {
  let count = 0
  return upstream(t, (req, res, next) => {
    if (req.url === '/retry' && count++ < 2) return res.writeHead(503).end()
    const hop = /^\/hop(\d)$/.exec(req.url)
    if (hop !== null && hop[1] !== '2') return res.writeHead(302, { location: `/hop${Number(hop[1]) + 1}` }).end()
    next()
  })
}

const counts = (spans) => spans.map(({ attributes }) => attributes['http.request.resend_count'])

for (const [name, expected] of [['undici8', [undefined, 1, 2]], ['undici7', [undefined, undefined, undefined]]]) {
  test(`${name}: attempts of the retry and redirect interceptors are counted`, { skip: name === 'undici8' && major < 22 }, async (t) => {
    const { Agent, interceptors, request } = require(name)
    const { origin } = await target(t)
    const dispatcher = new Agent().compose(interceptors.retry({ minTimeout: 1, maxTimeout: 1, timeoutFactor: 1 }))
    const redirecting = new Agent().compose(interceptors.redirect({ maxRedirections: 5 }))
    t.teardown(() => Promise.all([dispatcher.close(), redirecting.close()]))
    const retried = await serving(t, async () => { await (await request(`${origin}/retry`, { dispatcher })).body.dump() })
    t.same(counts(await retried.go()), expected)
    const redirected = await serving(t, async () => { await (await request(`${origin}/hop0`, { dispatcher: redirecting })).body.dump() })
    t.same(counts(await redirected.go()), expected)
  })
}

test('fetch: each redirect is a span, without a link to the others', async (t) => {
  const { origin } = await target(t)
  const { go } = await serving(t, async () => { await (await fetch(`${origin}/hop0`)).text() })
  const spans = await go()
  t.same(spans.map(({ attributes }) => attributes['http.response.status_code']), [302, 302, 200])
  t.same(counts(spans), [undefined, undefined, undefined])
})
