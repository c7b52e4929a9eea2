'use strict'

// Converts a trace to Chrome's JSON trace format, which ui.perfetto.dev and speedscope open. Each service is a process. A thread ("lane")
// holds slices that are nested or follow one another, but never overlap partly.

const { readSpan, kindName } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { rounded } = require('../store/summary')
const { layOut } = require('./layout')
const { lineText } = require('./log-lines')

const VALUE_MAX = 2000

function perfettoOf (trace) {
  const { nodes } = layOut(trace)
  const start = nodes.reduce((first, node) => Math.min(first, node.start), Infinity)
  const processes = new Map() // service → its number, and its heads: nodes that start a lane or reuse a free one
  const heads = headsOf(nodes, processes)
  const lanes = new Map()
  for (const process of processes.values()) numberLanes(process.heads, lanes)
  const names = [...processes].map(([service, { pid }]) => ({ name: 'process_name', ph: 'M', pid, tid: 0, args: { name: service || 'unknown service' } }))
  const index = new Map([...heads.keys()].map((node, i) => [node, i]))
  const slices = [...heads].map(([node, head]) => ({
    name: node.span.name,
    cat: kindName(node.span.kind),
    ph: 'X',
    ts: rounded((node.start - start) * 1000),
    dur: rounded(node.duration * 1000),
    pid: processes.get(node.span.origin.service).pid,
    tid: lanes.get(head),
    args: argumentsOf(node.span)
  }))
  return { displayTimeUnit: 'ms', traceEvents: [...names, ...slices, ...instantsOf(trace, nodes, start, (node) => slices[index.get(node)])], otherData: { traceId: trace.id } }
}

/** Log lines, each in the lane of the span that wrote it, or of the first span if that was not received. */
function instantsOf ({ lines = [] }, nodes, start, sliceOf) {
  if (lines.length === 0) return []
  const received = nodes.filter(({ span }) => span !== null)
  const byId = new Map(received.toReversed().map((node) => [node.id, node]))
  return lines.flatMap((line) => {
    const node = byId.get(line.spanId) ?? received[0]
    if (node === undefined) return []
    const { level, text, rest } = lineText(line)
    const { pid, tid } = sliceOf(node)
    return [{ name: short(`${level} ${text}`), cat: 'log', ph: 'i', s: 't', ts: rounded((line.timeMs + node.shift - start) * 1000), pid, tid, args: { attributes: rest } }]
  })
}

// A node goes into its parent's lane if it fits: within the parent, and after the previous sibling. Otherwise it is a head, which needs a
// lane. Nodes come in display order: parents before children, siblings by start.
function headsOf (nodes, processes) {
  const heads = new Map()
  const takenUntil = new Map()
  for (const node of nodes) {
    const { span, above, start, end } = node
    if (span === null) continue
    const { service } = span.origin
    if (!processes.has(service)) processes.set(service, { pid: processes.size + 1, heads: [] })
    const fits = heads.has(above) && above.span.origin.service === service && end <= above.end && start >= (takenUntil.get(above) ?? above.start)
    heads.set(node, fits ? heads.get(above) : node)
    if (fits) takenUntil.set(above, end)
    else processes.get(service).heads.push(node)
  }
  return heads
}

// Each head gets the lane that became free first, or a new lane. This takes one pass, because a trace may have as many lanes as spans.
function numberLanes (heads, lanes) {
  const byEnd = heads.toSorted((a, b) => a.end - b.end)
  let free = 0
  let count = 0
  for (const head of heads.sort((a, b) => a.start - b.start || a.end - b.end)) {
    const before = byEnd[free]
    if (lanes.has(before) && before.end <= head.start) {
      lanes.set(head, lanes.get(before))
      free++
    } else lanes.set(head, ++count)
  }
}

function argumentsOf (stored) {
  const { attributes, status, events } = readSpan(stored.bytes, stored.from, stored.to)
  const args = Object.create(null)
  args.span = stored.id
  if (status.code === 2) args.error = status.message || true
  for (const attribute of attributes) args[attribute.key] = short(plain(attribute))
  for (const { name, attributes: more } of events) for (const attribute of more) args[`${name}: ${attribute.key}`] = short(plain(attribute))
  return args
}

function short (value) {
  return typeof value === 'string' && value.length > VALUE_MAX ? value.slice(0, VALUE_MAX) : value
}

module.exports = { perfettoOf }
