'use strict'

// The routes of every bench server, as data. The load generator requests them, and each response is compared with `answer` before a
// round counts.

const items = [{ sku: 'a-1', count: 2 }, { sku: 'b-2', count: 1 }]

const checkout = { // the real request: a body, an order that never repeats, a client's trace
  method: 'POST',
  path: '/checkout',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ order: 'order-{n}', plan: 'gold', items })
}

/** A route without parameters, requested by its own path. */
const at = (path) => ({ route: path, requests: [{ method: 'GET', path }] })

const routes = {
  hello: { ...at('/'), answer: { hello: 'world' } },
  growth: { ...at('/growth'), answer: { hello: 'world' } }, // see server/setups/growth.js
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
    ...at('/statuses'),
    status: 210,
    answer: { hello: 'world' }
  },
  keys: { ...at('/keys'), answer: { hello: 'world' } },
  names: { ...at('/names'), answer: { hello: 'world' } },
  missing: {
    ...at('/missing'),
    status: 404,
    answer: { message: 'Route GET:/missing not found', error: 'Not Found', statusCode: 404 }
  },
  throws: {
    ...at('/throws'),
    status: 500,
    answer: { statusCode: 500, error: 'Internal Server Error', message: 'no such order' }
  },
  outbound: { ...at('/outbound'), answer: { upstream: 200 } },
  fetch: { ...at('/fetch'), answer: { upstream: 200 } },
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
  redis: { ...at('/redis'), answer: { value: 'a value of twenty ch' } },
  redisOther: { ...at('/redis-other'), answer: { hello: 'world' } }, // four commands in turn, each with a key that never repeats
  redisOften: { ...at('/redis-often'), answer: { value: 'a value of twenty ch' } }, // 21 GETs
  attributes: { ...at('/attributes'), answer: { hello: 'world' } },
  lines: { ...at('/lines'), answer: { hello: 'world' } }, // ten log lines
  debug: { ...at('/debug'), answer: { hello: 'world' } } // ten lines at debug level
}

module.exports = { routes, expectedAnswers }

// → [{ method, path, headers, body, status, answer }]: the requests to send, and the expected response text
function expectedAnswers (name) {
  const { requests, status = 200, answer } = routes[name]
  return requests.map((request) => ({ ...request, status, answer: JSON.stringify(answer) }))
}
