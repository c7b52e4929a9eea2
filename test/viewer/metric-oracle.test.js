'use strict'

// Random services send counters, gauges and histograms. What the viewer answers is compared with a plain reading of the same points.

const { test } = require('tap')
const { storeAt, counter, gauge, histogram, exponential, NOW_MS, DELTA, CUMULATIVE } = require('./metric-support')
const { randomFrom } = require('../support/random')

const S = 1000
const [SLOT, BOUNDS] = [10 * S, [1, 2, 4]]
const LONG = 300 * S // a longer time between points is not known to be even, and a service that is silent for longer has ended

/** What processes of two services send. Some start, end, pause, or have an instance id. Those of `stock` send deltas. */
function sendsOf (random) {
  const sends = []
  for (let process = 0; process < 5; process++) {
    const isDelta = random(3) === 0
    const resource = random(2) === 0 ? { 'service.instance.id': String(process) } : {}
    const start = NOW_MS + random(2) * random(300 * S) - random(2) * 7200 * S + process
    const everyMs = [5, 10, 15, 60][random(4)] * S
    const pauseMs = random(4) === 0 ? NOW_MS + random(400 * S) : Infinity
    const endMs = NOW_MS + (random(3) === 0 ? 100 * S + random(500 * S) : 800 * S)
    const held = new Map()
    let beforeMs = start
    for (let time = Math.max(start, NOW_MS) + 1 + random(everyMs); time < endMs; time += everyMs) {
      if (time > pauseMs && time < pauseMs + 400 * S) continue
      const points = []
      for (const [route, rarity] of [['/a', 1], ['/b', 3]]) {
        const added = [0, 1, 2, 3].map(() => random(rarity) === 0 ? random(50) : 0)
        if (!held.has(route) && random(2) === 0) continue // it is measured for the first time later
        held.set(route, sum([held.get(route) ?? (start < NOW_MS && beforeMs === start ? [10_000, 20_000, 500, 0] : [0, 0, 0, 0]), added]))
        if (!isDelta || total(added) > 0) points.push({ process, route, start: isDelta ? beforeMs : start, time, counts: isDelta ? added : held.get(route), level: random(100) })
      }
      if (points.length > 0) sends.push({ atMs: time, service: isDelta ? 'stock' : 'shop', resource, isDelta, points })
      beforeMs = time
    }
  }
  return sends.sort((a, b) => a.atMs - b.atMs)
}

function metricsOf ({ isDelta, points }) {
  const temporality = isDelta ? DELTA : CUMULATIVE
  const of = (values) => points.map((point) => ({ start: point.start, time: point.time, attributes: { 'http.route': point.route }, ...values(point) }))
  const buckets = of(({ counts }) => ({ count: total(counts), sum: sumOf(counts), bucketCounts: counts, explicitBounds: BOUNDS }))
  // Of values from a half to 8. Each process has a zero bucket of another width, which changes every minute.
  const powers = of(({ process, time, counts }) => {
    const zeros = (process + Math.floor(time / (60 * S))) % 4
    return { count: total(counts), sum: sumOf(counts), scale: 0, zeroThreshold: [0, ...BOUNDS][zeros], zeroCount: total(counts.slice(0, zeros)), positive: { offset: zeros - 1, bucketCounts: counts.slice(zeros) } }
  })
  return [counter(of(({ counts }) => ({ asInt: total(counts) })), { temporality }), gauge(of(({ level }) => ({ asInt: level }))),
    histogram(buckets, { temporality }), exponential(powers, { temporality, name: 'power' }), histogram(buckets, { temporality, name: 'http.server.request.duration' })]
}

/** What was counted when. */
function countedIn (sends) {
  const counted = []
  const last = new Map() // process and route → its last point
  const lastSent = new Map() // process → when
  for (const { service, isDelta, resource, points } of sends) {
    for (const { process, route, start, time, counts } of points) {
      const before = isDelta ? undefined : last.get(`${process} ${route}`)
      last.set(`${process} ${route}`, { time, counts })
      const fromMs = isDelta ? start : before?.time ?? Math.max(start, lastSent.get(process) ?? 0)
      if (!isDelta && before === undefined && time - fromMs > LONG) continue // it was counted before the viewer ran
      const added = before === undefined ? counts : counts.map((count, i) => count - before.counts[i])
      counted.push({ service, route, key: JSON.stringify([resource, route]), isDelta, fromMs: Math.max(fromMs, time - LONG), toMs: time, counts: added })
    }
    lastSent.set(points[0].process, points[0].time)
  }
  return counted
}

function expected (counted, { sentMs, nowMs }, routes, slots) {
  const newestMs = Math.max(...counted.map(({ toMs }) => toMs)) // what was measured ends here
  const shown = counted.filter(({ route }) => routes.includes(route))
  const within = (list, slot) => list.filter(({ fromMs, toMs }) => fromMs < (slot + 1) * SLOT && toMs > slot * SLOT)
  // A sender of deltas sends none while nothing is counted.
  const idle = (list) => seriesOf(list).filter(([{ isDelta }]) => isDelta).map((points) => [points[0].fromMs, points.at(-1).toMs])
  const isIdle = (times, slot) => times.some(([from, to]) => from < slot * SLOT && to > slot * SLOT)
  const [idleAll, idleShown] = [idle(counted), idle(shown)]
  const measured = slots.map((slot) => {
    const begins = isIdle(idleAll, slot) ? [0] : within(counted, slot).map(({ fromMs }) => Math.max(0, fromMs - slot * SLOT))
    const isNewest = newestMs > slot * SLOT && newestMs < (slot + 1) * SLOT && nowMs - sentMs <= LONG
    return begins.length === 0 ? 0 : (isNewest ? newestMs - slot * SLOT : SLOT) - Math.min(...begins)
  })
  const counts = slots.map((slot) => sum([[0, 0, 0, 0], ...within(shown, slot).map(({ fromMs, toMs, counts: each }) => {
    const share = (Math.min(toMs, (slot + 1) * SLOT) - Math.max(fromMs, slot * SLOT)) / (toMs - fromMs)
    return each.map((count) => count * share)
  })]))
  return {
    rate: slots.map((slot, i) => within(shown, slot).length > 0 || isIdle(idleShown, slot) ? total(counts[i]) / measured[i] * 1000 : null),
    mean: counts.map((each) => total(each) > 0 ? sumOf(each) / total(each) : null),
    p50: counts.map(medianOf),
    overall: total(counts.map(total)) / Math.max(1, total(measured)) * 1000
  }
}

/** The mean over the series of the last values. A value holds until the next one, and the newest as long as the one before did. */
function levelsIn (sends, slots) {
  const points = sends.flatMap(({ resource, points: sent }) => sent.map((point) => ({ ...point, key: JSON.stringify([resource, point.route]), slot: Math.floor(point.time / SLOT) })))
  const series = seriesOf(points).map((list) => list.filter(({ slot }, i) => list[i + 1]?.slot !== slot))
  return slots.map((slot) => {
    const values = series.flatMap((list) => {
      const at = list.findLastIndex((each) => each.slot <= slot)
      if (at === -1) return []
      const gap = at + 1 < list.length ? list[at + 1].slot - list[at].slot : at === 0 ? 1 : list[at].slot - list[at - 1].slot
      return slot < list[at].slot + (gap <= LONG / SLOT ? gap : 1) ? [list[at].level] : []
    })
    return values.length === 0 ? null : total(values) / values.length
  })
}

function medianOf (counts) {
  const half = total(counts) / 2
  let below = 0
  const at = counts.findIndex((count) => count > 0 && (below += count) >= half * (1 - 1e-9))
  return at === -1 ? null : at === 3 ? 4 : [0, ...BOUNDS][at] + (BOUNDS[at] - [0, ...BOUNDS][at]) * (half - below + counts[at]) / counts[at]
}

const seriesOf = (list) => [...new Set(list.map(({ key }) => key))].map((key) => list.filter((each) => each.key === key))
const total = (list) => list.reduce((all, each) => all + each, 0)
const sum = (lists) => lists.reduce((all, list) => all.map((each, i) => each + list[i]))
const sumOf = (counts) => total(counts.map((count, i) => count * (i + 0.5)))
const isAlike = (a, b) => a === b || (a !== null && b !== null && Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(b)))

test('rates, values and percentiles are those of the points, in every slot and as a whole', async (t) => {
  for (let seed = 1; seed <= 4; seed++) {
    const next = randomFrom(seed)
    const random = (max) => Math.floor(next() * max)
    const sends = sendsOf(random)
    const { send, clock, data, overview } = storeAt()
    let sent = 0
    for (const nowMs of [60, 401, 809, 1130].map((at) => NOW_MS + at * S + random(10 * S))) {
      for (; sends[sent]?.atMs <= nowMs; sent++) send(metricsOf(sends[sent]), sends[sent])
      clock.ms = nowMs
      for (const service of new Set(sends.slice(0, sent).map((each) => each.service))) {
        const own = sends.slice(0, sent).filter((each) => each.service === service)
        const check = (what, found, wanted) => {
          const at = wanted.findIndex((each, i) => !isAlike(found?.[i] ?? null, each))
          t.equal(at, -1, `seed ${seed}, ${(nowMs - NOW_MS) / S} s, ${service}: ${what}${at === -1 ? '' : ` of slot ${at} is ${found?.[at]}, not ${wanted[at]}`}`)
        }
        const [counted, of] = [countedIn(own), `&service=${service}&from=${NOW_MS}`]
        const [count, time, power, b, levels, { routes }] = [await data(`name=count${of}`), await data(`name=time${of}`), await data(`name=power${of}`), await data(`name=time${of}&attr=http.route:/b`), await data(`name=level${of}`), await overview(of)]
        const slots = levels.atMs.map((ms) => ms / SLOT)
        const wanted = (shown) => expected(counted, { sentMs: own.at(-1).atMs, nowMs }, shown, slots)
        const [all, ofB] = [wanted(['/a', '/b']), wanted(['/b'])]
        check('rate', count.series[0]?.rate, all.rate)
        for (const key of ['rate', 'mean', 'p50']) for (const [answer, plain] of [[time, all], [b, ofB]]) check(key, answer.series[0]?.[key], plain[key])
        for (const key of ['rate', 'mean']) check(`${key} of exponential buckets`, power.series[0]?.[key], all[key])
        check('level', levels.series[0].value, levelsIn(own, slots))
        for (const { route, rate } of routes) check(`overall ${route}`, [rate], [wanted([route]).overall])
      }
    }
  }
})
