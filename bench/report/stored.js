'use strict'

// The form of each kind of measurement in bench/results: only what a published table reads. A spread is [median, minimum, maximum], an
// interval [median, half width] or [median, low, high].
//
// Each function takes what a bench has measured, or what is already stored, and returns what to store.

const { KINDS } = require('../instructions/callgrind')

module.exports = { stored }

/** @param {string} kind the file's name under bench/results */
function stored (kind, result) {
  return (STORED[kind] ?? ((other) => other))(result)
}

const STORED = {
  instructions: ({ profile, nodes }) => ({
    profile,
    nodes: mapped(nodes, ({ node, date, rows }) => ({ node, date, rows: rows.filter(isShown).map((row) => countedRow(row, profile)) }))
  }),
  seeds: ({ tables }) => ({ tables: tables.map(seedsTable) }),
  v8: ({ rows, profile: { settle, connections }, node, ...result }) => ({ ...sourceOf(result), node, profile: { settle, connections }, rows: rows.map(tracedRow) }),
  faults: ({ rows, profile, node, ...result }) => ({ ...sourceOf(result), node, profile, rows: rows.map(faultRow) }),
  'startup-instructions': ({ major, rows, ...result }) => ({ ...sourceOf(result), major, rows: mapped(rows, startRow) }),
  // Stores only the bytes, which are the same on every machine. Times are not.
  micro: ({ node, rows, ...result }) => ({ ...sourceOf(result), node, rows: rows.filter(({ step }) => step !== null).map(({ name, step, bytes }) => ({ name, step, bytes })) }),
  growth: ({ node, tables, ...result }) => ({ ...sourceOf(result), node, tables }),
  'log-lines': ({ node, rounds, lines, rows, ...result }) => ({ ...sourceOf(result), node, rounds, lines, rows: rows.map(({ label, micros, median, min, max, over }) => ({ label, micros: micros ?? [median, min, max], over })) }),
  'next-tick': ({ rounds, rows, ...result }) => ({ ...sourceOf(result), rounds, rows }),
  viewer: ({ node, steal, ...result }) => ({ ...result, ...sourceOf({ steal, ...result }), node }),
  'viewer-page': pageFigures
}

/** Date, machine and code version, for captions. */
function sourceOf ({ date, commit, dirty, hot, machine, steal, stolen = steal }) {
  return { date, commit, ...dirty && { dirty }, ...hot !== undefined && { hot }, ...machine !== undefined && { machine: machineText(machine, stolen) } }
}

function machineText (machine, stolen) {
  if (typeof machine === 'string') return machine
  const { cores, cpu, pinning, loadBefore } = machine
  const others = stolen > 0.005 ? `, ${(stolen * 100).toFixed(1)} % of its time taken by other machines` : ''
  const busy = loadBefore > 0.5 ? `, not idle before (load ${loadBefore.toFixed(1)})` : ''
  return `${cores}-core ${cpu}, ${pinning}${others}${busy}`
}

// Fastify's own baselines are left out: the difference to them is stored. The real request has baseline rows of its own.
function isShown ({ name, over }) {
  return (over ?? null) !== null || name === 'bare' || name.startsWith('bare-real')
}

function countedRow ({ name, commit, hot, processes, requests, warmUp, isCollected, total, over, kinds = kindsOf(over) }, profile) {
  return {
    name,
    commit,
    ...hot !== undefined && { hot },
    processes,
    ...requests !== profile.requests && { requests },
    ...warmUp !== profile.warmUp && { warmUp },
    ...isCollected === false && { isCollected },
    total: interval(total),
    ...over && { over: interval(over) },
    ...kinds && { kinds }
  }
}

// Ordered as KINDS; undefined if the baseline was read from a file, which has only its total.
function kindsOf (over) {
  return Number.isFinite(over?.[KINDS[0]]) ? KINDS.map((kind) => over[kind]) : undefined
}

function seedsTable ({ name, route, node, profile, rows, versions, ...result }) {
  const { connections, pipelining, rounds, seconds, processes } = profile
  return {
    name,
    route,
    node,
    ...sourceOf(result),
    profile: { connections, pipelining, rounds, seconds, processes },
    versions: versions ?? Object.assign({}, ...rows.map((row) => row.versions)),
    rows: rows.map(loadedRow)
  }
}

function loadedRow ({ name, label, requests, spans, serverBusy, loadBusy, busy, faults = [], ...figures }) {
  const row = { name, label, requests, spans: Array.isArray(spans) ? spans : [spans.created, spans.received] }
  for (const key of ['requestsPerSecond', 'overMicros', 'overRssMB']) if (figures[key]) row[key] = figures[key].median ?? figures[key]
  for (const key of ['relativeRps', 'relativeCpu', 'cpuMicrosPerRequest', 'latencyP99Ms', 'rssMB']) if (figures[key]) row[key] = spread(figures[key])
  row.busy = busy ?? [serverBusy.median, loadBusy.median]
  return faults.length > 0 ? { ...row, faults } : row
}

function tracedRow ({ name, label, compiled, deoptimised, ours, bytes, survivors, over }) {
  const { deoptimisations, functions = [] } = over ?? {}
  return {
    name,
    label,
    compiled,
    deoptimised: deoptimised.length ?? deoptimised,
    ours: ours ?? deoptimised.filter(({ ours }) => ours).length,
    bytes,
    survivors,
    ...over && { over: { deoptimisations, bytes: over.bytes, ...name === 'delivered' && { functions: functions.map(({ name, reason }) => ({ name, reason })) } } }
  }
}

function faultRow ({ row, name, isControl, over, calm, overP50, bareP99, answers, wrong, spans }) {
  return { name, ...row && { row }, ...isControl && { isControl }, over: spread(over), calm, overP50: spread(overP50), bareP99, answers, wrong, ...spans && { spans: Array.isArray(spans) ? spans : [spans.delivered, sum(spans.dropped), spans.queued + spans.inFlight] } }
}

function startRow ({ label, ready, answered }) {
  const figures = (figure) => Array.isArray(figure) ? figure : [figure.own, figure.over, figure.share]
  return { label, ready: figures(ready), answered: figures(answered) }
}

function pageFigures ({ node, chromium, realTime, spans, firstPaintMs, allRowsMs, emptyPaintMs, scrolling: { longTasks, frames, frameMs }, mainThread, loadMs, scrollFrameMs, metrics, lines, seenMs, ...result }) {
  return {
    ...sourceOf(result),
    node,
    chromium,
    realTime,
    spans,
    firstPaintMs: few(firstPaintMs),
    allRowsMs: few(allRowsMs),
    emptyPaintMs: few(emptyPaintMs),
    scrolling: { longTasks, frames, ...framesOf(frameMs) },
    mainThread: { loadMs: few(mainThread.loadMs), scrollFrameMs: few(mainThread.scrollFrameMs) },
    ...metrics && { metrics: { series: metrics.series, ...framesOf(metrics.frameMs) } },
    ...lines && { lines: { lines: lines.lines, ...framesOf(lines.frameMs) } },
    seenMs: few(seenMs)
  }
}

function framesOf (frameMs) {
  return frameMs && { frameMs: { ...few(frameMs), p95: frameMs.p95 } }
}

function few ({ count, min, median, max }) {
  return { count, min, median, max }
}

function spread (figure) {
  return Array.isArray(figure) ? figure : [figure.median, figure.min ?? figure.low, figure.max ?? figure.high]
}

// The half width is unknown when there was only one process.
function interval (figure) {
  if (Array.isArray(figure)) return figure
  const { median, halfWidth } = figure
  return Number.isFinite(halfWidth) ? [median, halfWidth] : [median]
}

function sum (counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function mapped (object, fn) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, fn(value)]))
}
