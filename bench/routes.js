'use strict'

// The routes that every server of the bench has, as data. The load asks for them, and each answer is
// compared with `answer` before a round counts.

const order = { id: 7, items: [{ sku: 'a-1', count: 2 }, { sku: 'b-2', count: 1 }] }

const checkout = { // a real request: a body, an order that never comes again, a caller's trace
  method: 'POST',
  path: '/checkout',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ order: 'order-{n}', plan: 'gold', items: order.items })
}

const routes = {
  hello: {
    route: '/',
    requests: [{ method: 'GET', path: '/' }],
    answer: { hello: 'world' }
  },
  growth: { // see server/setups/growth.js
    route: '/growth',
    requests: [{ method: 'GET', path: '/growth' }],
    answer: { hello: 'world' }
  },
  query: {
    route: '/',
    requests: [{ method: 'GET', path: '/?term=light+trace&page=2&sort=price&direction=up&session={n}' }],
    answer: { hello: 'world' }
  },
  parametric: {
    route: '/users/:id',
    requests: [{ method: 'GET', path: '/users/{n}' }],
    answer: { hello: 'world' }
  },
  parameters: {
    route: '/',
    requests: [{ method: 'GET', path: '/?name{n}=light+trace' }],
    answer: { hello: 'world' }
  },
  statuses: { // 210 to 217, in turn
    route: '/statuses',
    requests: [{ method: 'GET', path: '/statuses' }],
    status: 210,
    answer: { hello: 'world' }
  },
  keys: {
    route: '/keys',
    requests: [{ method: 'GET', path: '/keys' }],
    answer: { hello: 'world' }
  },
  names: {
    route: '/names',
    requests: [{ method: 'GET', path: '/names' }],
    answer: { hello: 'world' }
  },
  missing: {
    route: '/missing',
    requests: [{ method: 'GET', path: '/missing' }],
    status: 404,
    answer: { message: 'Route GET:/missing not found', error: 'Not Found', statusCode: 404 }
  },
  throws: {
    route: '/throws',
    requests: [{ method: 'GET', path: '/throws' }],
    status: 500,
    answer: { statusCode: 500, error: 'Internal Server Error', message: 'no such order' }
  },
  json: {
    route: '/json',
    requests: [{ method: 'GET', path: '/json' }],
    answer: { id: 42, name: 'a user', tags: ['a', 'b', 'c'], address: { city: 'Oslo', zip: '0150' } }
  },
  post: {
    route: '/orders',
    requests: [{
      method: 'POST',
      path: '/orders',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(order)
    }],
    status: 201,
    answer: { id: 7, count: 3 }
  },
  params20: {
    route: /^\/r\d+\/:id$/,
    requests: Array.from({ length: 20 }, (_, i) => ({ method: 'GET', path: `/r${i}/${1000 + i}` })),
    answer: (i) => ({ route: i, id: String(1000 + i) })
  },
  outbound: {
    route: '/outbound',
    requests: [{ method: 'GET', path: '/outbound' }],
    answer: { upstream: 200 }
  },
  fetch: {
    route: '/fetch',
    requests: [{ method: 'GET', path: '/fetch' }],
    answer: { upstream: 200 }
  },
  checkout: {
    route: '/checkout',
    requests: [checkout],
    answer: { plan: 'gold', user: 'a value of twenty ch', count: 3 }
  },
  checkoutFetch: {
    route: '/checkout',
    requests: [checkout],
    answer: { plan: 'gold', user: 'ok', count: 3 }
  },
  redis: {
    route: '/redis',
    requests: [{ method: 'GET', path: '/redis' }],
    answer: { value: 'a value of twenty ch' }
  },
  redisOther: { // four commands in turn, each with a key that never comes again
    route: '/redis-other',
    requests: [{ method: 'GET', path: '/redis-other' }],
    answer: { hello: 'world' }
  },
  redisOften: { // 21 of them
    route: '/redis-often',
    requests: [{ method: 'GET', path: '/redis-often' }],
    answer: { value: 'a value of twenty ch' }
  },
  attributes: {
    route: '/attributes',
    requests: [{ method: 'GET', path: '/attributes' }],
    answer: { hello: 'world' }
  },
  lines: { // ten log lines
    route: '/lines',
    requests: [{ method: 'GET', path: '/lines' }],
    answer: { hello: 'world' }
  },
  debug: { // ten more, at debug
    route: '/debug',
    requests: [{ method: 'GET', path: '/debug' }],
    answer: { hello: 'world' }
  },
  text: {
    route: '/text',
    requests: [{ method: 'GET', path: '/text' }],
    answer: 'hello world',
    text: true
  },
  echo: {
    route: '/echo',
    requests: [{
      method: 'POST',
      path: '/echo',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(order)
    }],
    answer: order
  },
  awaits: {
    route: '/awaits',
    requests: [{ method: 'GET', path: '/awaits' }],
    answer: { sum: 19900 }
  }
}

module.exports = { routes, expectedAnswers }

// → [{ method, path, headers, body, status, answer }], what a prober sends, and the text that must come.
function expectedAnswers (name) {
  const { requests, status = 200, answer, text } = routes[name]
  return requests.map((request, i) => {
    const value = typeof answer === 'function' ? answer(i) : answer
    return { ...request, status, answer: text ? value : JSON.stringify(value) }
  })
}
