'use strict'

// The rate alone, with time and randomness from a seed: hours pass in milliseconds and nothing is left to chance.

const { test } = require('tap')
const { FairRate, RouteRate } = require('../../lib/sampling/per-second')
const { probabilityOf } = require('../support/extrapolation')

const TWO_24 = 2 ** 24

test('below the rate every request is taken, and says so', async (t) => {
  const { perSecond, routes } = simulate({ perSecond: 50, seconds: 20, demands: () => [20, 9, 1] })
  t.ok(perSecond.length >= 20)
  for (const { arrivals, taken, extrapolated } of routes) {
    t.equal(taken, arrivals)
    t.equal(extrapolated, arrivals)
  }
})

test('above it about so many a second are taken, and rare routes first', async (t) => {
  const { perSecond, routes } = simulate({ perSecond: 50, seconds: 120, demands: () => [400, 90, 9, 1] })
  const steady = perSecond.slice(5)
  const mean = sum(steady) / steady.length
  t.ok(mean > 47 && mean < 53, `${mean} a second`)
  const [busy, usual, rare, rarest] = routes
  t.equal(rarest.taken, rarest.arrivals, 'the rarest whole')
  t.ok(rare.taken / rare.arrivals > 0.98, 'the rare one as well as whole')
  t.ok(Math.abs(busy.taken / usual.taken - 1) < 0.1, 'the two busy ones alike')
})

for (const seed of [1, 2, 3, 4, 5]) {
  test(`a tenfold burst is over the rate by less than a tenth in its first ten seconds, seed ${seed}`, async (t) => {
    for (const burst of [[4000, 900, 90, 10], [4900, 90, 9, 1], [1, 9, 90, 4900]]) {
      const { perSecond } = simulate({ perSecond: 50, seconds: 30, seed, demands: (second) => second < 10 ? [400, 90, 9, 1] : burst })
      const inBurst = sum(perSecond.slice(10, 20))
      t.ok(inBurst <= 550, `${inBurst} in ten seconds`)
      t.ok(inBurst >= 400, `${inBurst} in ten seconds`)
    }
  })
}

test('a burst out of nothing is held as well', async (t) => {
  for (const demands of [(second) => second < 10 ? [0.1, 0.1] : [4900, 90], () => [4900, 90]]) {
    const { perSecond } = simulate({ perSecond: 50, seconds: 20, demands })
    for (let from = 0; from + 10 <= 20; from++) t.ok(sum(perSecond.slice(from, from + 10)) <= 550, `from second ${from}`)
  }
})

test('more routes than the rate has traces share them by chance', async (t) => {
  const { perSecond } = simulate({ perSecond: 50, seconds: 60, demands: () => new Array(300).fill(1) })
  const steady = perSecond.slice(20)
  t.ok(Math.abs(sum(steady) / steady.length / 50 - 1) < 0.1, `${sum(steady) / steady.length} a second`)
})

test('the first request of a route that nobody asked for an hour is taken, whatever goes on', async (t) => {
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
  t.ok(taken.every((tracestate) => tracestate === 'ot=th:0'), 'each route that is new')
})

test('a route that comes back within the hour has no such right', async (t) => {
  const rate = new FairRate(1)
  const routes = Array.from({ length: 500 }, () => new RouteRate())
  let now = 0
  let taken = 0
  for (let minute = 0; minute < 30; minute++) {
    for (const route of routes) if (rate.take(route, random24(now), now += 100) !== '' && minute > 0) taken++
  }
  t.ok(taken < 29 * 50 * 1.6, `${taken} in ${29 * 50} s`)
})

test('what was taken stands for what came: the sums come out, over bursts too', async (t) => {
  const total = { arrivals: 0, extrapolated: 0, variance: 0 }
  for (let seed = 1; seed <= 20; seed++) {
    const { routes } = simulate({ perSecond: 50, seconds: 25, seed, demands: (second) => second < 10 ? [400, 90, 9, 1] : [4000, 900, 90, 10] })
    for (const route of routes) for (const name of Object.keys(total)) total[name] += route[name]
  }
  const sigmas = Math.abs(total.extrapolated - total.arrivals) / Math.sqrt(total.variance)
  t.ok(sigmas < 3, `${total.arrivals} came, ${Math.round(total.extrapolated)} are told: ${sigmas.toFixed(1)} standard deviations`)
})

test('the threshold that is written is the one that decided', async (t) => {
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

/** Poisson arrivals on as many routes as there are demands (requests a second). */
function simulate ({ perSecond, seconds, demands, seed = 1 }) {
  const rate = new FairRate(perSecond)
  const random = randomOf(seed)
  const routes = demands(0).map(() => ({ rate: new RouteRate(), arrivals: 0, taken: 0, extrapolated: 0, variance: 0 }))
  const taken = new Array(seconds).fill(0)
  const start = 5_000_000
  for (let now = 0; ;) {
    const current = demands(now / 1000)
    const all = sum(current)
    now += -Math.log(1 - random()) * 1000 / all
    if (now >= seconds * 1000) break
    let pick = random() * all
    const route = routes[current.findIndex((demand) => (pick -= demand) < 0)]
    const tracestate = rate.take(route.rate, Math.floor(random() * TWO_24), start + now)
    route.arrivals++
    if (tracestate === '') continue
    const probability = probabilityOf(tracestate)
    route.taken++
    route.extrapolated += 1 / probability
    route.variance += (1 - probability) / probability ** 2
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

/** Mulberry32: the same numbers on every machine. */
function randomOf (seed) {
  let state = Math.imul(seed, 0x9e3779b1)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
