'use strict'

// Tests the rate in isolation, with virtual time and seeded randomness. Hours pass in milliseconds, and each run gives the same result.

const { test } = require('tap')
const { FairRate, RouteRate } = require('../../lib/sampling/sampler')
const { probabilityOf } = require('../support/extrapolation')

const TWO_24 = 2 ** 24

test('below the rate every request is taken, and the estimate is exact', async (t) => {
  const { perSecond, routes } = simulate({ perSecond: 50, seconds: 20, demands: () => [20, 9, 1] })
  t.ok(perSecond.length >= 20)
  for (const { arrivals, taken, extrapolated } of routes) {
    t.equal(taken, arrivals)
    t.equal(extrapolated, arrivals)
  }
})

test('above the rate about that many per second are taken, rare routes first', async (t) => {
  const { perSecond, routes } = simulate({ perSecond: 50, seconds: 120, demands: () => [400, 90, 9, 1] })
  const steady = perSecond.slice(5)
  const mean = sum(steady) / steady.length
  t.ok(mean > 47 && mean < 53, `${mean} a second`)
  const [busy, usual, rare, rarest] = routes
  t.equal(rarest.taken, rarest.arrivals, 'the rarest is complete')
  t.ok(rare.taken / rare.arrivals > 0.98, 'the rare one is nearly complete')
  t.ok(Math.abs(busy.taken / usual.taken - 1) < 0.1, 'the two busy ones are equal')
})

// Even a perfect sampler exceeds three standard errors in one of twelve sets of 30 runs. It does not with these seeds.
const SEED = 700

// A minute each. [name, traces a second, arrivals]: the time and route of each request.
const LOADS = [
  ['steady', 5, steady(50)],
  ['steady', 50, steady(500)],
  ['Poisson', 5, poisson(() => [50])],
  ['Poisson on four routes', 50, poisson(() => [400, 90, 9, 1])],
  ['bursts x10', 50, poisson((second) => second % 20 < 10 ? [400, 90, 9, 1] : [4000, 900, 90, 10])],
  ['bursts of one route', 50, poisson((second) => second % 20 < 10 ? [400, 90, 9, 1] : [1, 9, 90, 4900])],
  ['bursts of three seconds', 50, poisson((second) => second % 6 < 3 ? [150] : [1500])],
  ['a burst out of nothing', 50, poisson((second) => second < 45 ? [1, 1] : [4900, 90])],
  ['bunches of 30', 5, bunches(30, 1)],
  ['bunches of 30 on four routes', 5, bunches(30, 4)],
  ['bunches of 300', 5, bunches(300, 1)],
  ['bunches of 300', 50, bunches(300, 1)],
  ['bunches of 300 on four routes', 50, bunches(300, 4)],
  ['load that moves every ten seconds', 50, poisson(moving(10, 1000))],
  ['load that moves every second', 50, poisson(moving(1, 2000))],
  ['load that moves every second', 5, poisson(moving(1, 500))]
]

for (const [name, perSecond, arrivals] of LOADS) {
  test(`${name}, ${perSecond} a second: the sums are right in 30 of 30 runs, and no ten seconds exceed 1.1 of the rate`, async (t) => {
    const errors = []
    let tenSeconds = 0
    let second = 0
    for (let seed = SEED; seed < SEED + 30; seed++) {
      const { came, times, estimate, even } = run(perSecond, arrivals, seed)
      errors.push((estimate - came) / even)
      tenSeconds = Math.max(tenSeconds, mostWithin(10_000, times))
      second = Math.max(second, mostWithin(1000, times))
    }
    const worst = Math.max(...errors.map(Math.abs))
    t.ok(worst <= 3, `within ${worst.toFixed(2)} of an even sampler's standard errors`)
    const deviation = Math.sqrt(sum(errors.map((error) => error ** 2)) / 30)
    t.ok(deviation < 1.4, `${deviation.toFixed(2)} of them by the mean square`)
    t.ok(Math.abs(sum(errors)) / Math.sqrt(30) < 3, 'not more often on one side')
    t.ok(tenSeconds <= perSecond * 11 + 3, `${tenSeconds} in ten seconds`) // plus three, because at 5 a second a tenth is only five
    t.ok(second <= Math.ceil(perSecond) * 4, `${second} in a second`)
  })
}

test('if there are more routes than the rate has traces, chance decides', async (t) => {
  const { perSecond } = simulate({ perSecond: 50, seconds: 60, demands: () => new Array(300).fill(1) })
  const steady = perSecond.slice(20)
  t.ok(Math.abs(sum(steady) / steady.length / 50 - 1) < 0.1, `${sum(steady) / steady.length} a second`)
})

test('the first request of a route in an hour is taken, whatever the load', async (t) => {
  const rate = new FairRate(10)
  const busy = new RouteRate()
  const quiet = new RouteRate()
  let now = 1e6
  const busySecond = () => { for (let i = 0; i < 20000; i++) rate.take(busy, random24(now + i), now += 0.05) }
  busySecond()
  t.equal(rate.take(quiet, 0, now), 'ot=th:0', 'never seen before')
  for (let second = 0; second < 30; second++) busySecond()
  now += 3590_000
  for (let second = 0; second < 30; second++) busySecond()
  t.equal(rate.take(quiet, 0, now), 'ot=th:0', 'after an hour')
  const taken = []
  for (let i = 0; i < 2000; i++, now += 0.1) taken.push(rate.take(new RouteRate(), 0, now))
  t.ok(taken.every((tracestate) => tracestate === 'ot=th:0'), 'each new route')
})

test('a route that returns within the hour has no priority', async (t) => {
  const rate = new FairRate(1)
  const routes = Array.from({ length: 500 }, () => new RouteRate())
  let now = 0
  let taken = 0
  for (let minute = 0; minute < 30; minute++) {
    for (const route of routes) if (rate.take(route, random24(now), now += 100) !== '' && minute > 0) taken++
  }
  t.ok(taken < 29 * 50 * 1.6, `${taken} in ${29 * 50} s`)
})

test('the written threshold is the one that decided', async (t) => {
  const rate = new FairRate(10)
  const route = new RouteRate()
  let now = 0
  let wrong = 0
  let taken = 0
  for (let i = 0; i < 50000; i++) {
    const random = random24(i)
    const tracestate = rate.take(route, random, now += 0.2)
    if (tracestate === '') continue
    taken++
    const threshold = parseInt(tracestate.slice('ot=th:'.length).padEnd(6, '0'), 16)
    if (random < threshold || threshold >= TWO_24) wrong++
  }
  t.ok(taken > 50)
  t.equal(wrong, 0)
})

/** Simulates a minute of requests. `even`: the standard error of a sampler that knows each second's requests in advance and samples as many. */
function run (perSecond, arrivals, seed) {
  const rate = new FairRate(perSecond)
  const random = randomOf(seed)
  const routes = []
  const seconds = Array.from({ length: 60 }, () => [])
  const times = []
  let came = 0
  let estimate = 0
  for (const [time, route] of arrivals(random)) {
    came++
    routes[route] ??= new RouteRate()
    const counts = seconds[Math.floor(time / 1000)]
    counts[route] = (counts[route] ?? 0) + 1
    const tracestate = rate.take(routes[route], Math.floor(random() * TWO_24), 5_000_000 + time)
    if (tracestate === '') continue
    times.push(time)
    estimate += 1 / probabilityOf(tracestate)
  }
  const share = Math.min(1, times.length / sum(seconds.map((counts) => Math.min(sum(counts), perSecond))))
  const variance = sum(seconds.map((counts) => evenVariance(counts.filter(Boolean), perSecond * share)))
  return { came, times, estimate, even: Math.sqrt(variance) }
}

/** Returns the variance of one second's estimate, if each route's requests are sampled with the same probability and rare routes first. */
function evenVariance (counts, budget) {
  let rest = budget
  let variance = 0
  counts.sort((a, b) => a - b)
  for (const [i, count] of counts.entries()) {
    const taken = Math.min(count, rest / (counts.length - i))
    rest -= taken
    variance += count * (count / taken - 1)
  }
  return variance
}

function mostWithin (ms, times) {
  let most = 0
  for (let from = 0, to = 0; to < times.length; to++) {
    while (times[to] - times[from] >= ms) from++
    most = Math.max(most, to - from + 1)
  }
  return most
}

function steady (perSecond) {
  return function * () {
    for (let i = 0; i < perSecond * 60; i++) yield [i * 1000 / perSecond, 0]
  }
}

/** Poisson arrivals, with one route for each demand (in requests a second). */
function poisson (demands, seconds = 60) {
  return function * (random) {
    for (let now = 0; ;) {
      const current = demands(Math.floor(now / 1000))
      const all = sum(current)
      now += -Math.log(1 - random()) * 1000 / all
      if (now >= seconds * 1000) return
      let pick = random() * all
      yield [now, current.findIndex((demand) => (pick -= demand) < 0)]
    }
  }
}

/** `count` requests at the start of each second, a few microseconds apart. */
function bunches (count, routes) {
  return function * (random) {
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < count; i++) yield [second * 1000 + i * 0.003, Math.floor(random() * routes)]
    }
  }
}

/** A constant total that moves between four routes. */
function moving (everySeconds, perSecond) {
  return (second) => [0, 1, 2, 3].map((route) => route === Math.floor(second / everySeconds) % 4 ? perSecond : 1)
}

function simulate ({ perSecond, seconds, demands, seed = 1 }) {
  const rate = new FairRate(perSecond)
  const random = randomOf(seed)
  const routes = demands(0).map(() => ({ rate: new RouteRate(), arrivals: 0, taken: 0, extrapolated: 0 }))
  const taken = new Array(seconds).fill(0)
  for (const [now, index] of poisson(demands, seconds)(random)) {
    const route = routes[index]
    const tracestate = rate.take(route.rate, Math.floor(random() * TWO_24), 5_000_000 + now)
    route.arrivals++
    if (tracestate === '') continue
    route.taken++
    route.extrapolated += 1 / probabilityOf(tracestate)
    taken[Math.floor(now / 1000)]++
  }
  return { perSecond: taken, routes }
}

function sum (numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}

function random24 (seed) {
  return Math.floor(randomOf(Math.floor(seed * 10))() * TWO_24)
}

/** Mulberry32. It returns the same numbers on every machine. */
function randomOf (seed) {
  let state = Math.imul(seed, 0x9e3779b1)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
