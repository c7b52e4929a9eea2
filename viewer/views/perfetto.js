'use strict'

// Chrome's JSON trace format, which ui.perfetto.dev and speedscope open. A process is a service; a thread ("lane") holds
// slices that lie in one another or beside one another, never across.

const { readSpan, kindName } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { rounded } = require('../store/summary')
const { layOut } = require('./layout')

const VALUE_MAX = 2000

function perfettoOf (trace) {
  const { nodes } = layOut(trace)
  const start = nodes.reduce((first, node) => Math.min(first, node.start), Infinity)
  const processes = new Map()
  const events = []
  const laneOf = new Map()
  for (const node of nodes) {
    if (node.span === null) continue
    const process = processOf(processes, node.span.origin.service, events)
    const lane = laneFor(node, process, laneOf)
    events.push({
      name: node.span.name,
      cat: kindName(node.span.kind),
      ph: 'X',
      ts: rounded((node.start - start) * 1000),
      dur: rounded(node.duration * 1000),
      pid: process.pid,
      tid: lane.tid,
      args: argumentsOf(node.span)
    })
  }
  return { displayTimeUnit: 'ms', traceEvents: events, otherData: { traceId: trace.id } }
}

function processOf (processes, service, events) {
  let process = processes.get(service)
  if (process === undefined) {
    processes.set(service, process = { pid: processes.size + 1, lanes: [] })
    events.push({ name: 'process_name', ph: 'M', pid: process.pid, tid: 0, args: { name: service || 'unknown service' } })
  }
  return process
}

// Beneath its parent where it fits, else on the first lane that is free from its start on. Nodes come in display order: a parent
// before its children, siblings by start.
function laneFor (node, process, laneOf) {
  const above = laneOf.get(node.above)
  let lane = above !== undefined && above.process === process && node.end <= node.above.end && fits(above, node) ? above : undefined
  lane ??= process.lanes.find((each) => each.freeFrom <= node.start)
  if (lane === undefined) {
    lane = { process, tid: process.lanes.length + 1, freeFrom: 0, open: [] }
    process.lanes.push(lane)
  }
  lane.freeFrom = Math.max(lane.freeFrom, node.end)
  lane.open.push(node)
  laneOf.set(node, lane)
  return lane
}

// Its slices that are open at the node's start are the node's ancestors.
function fits (lane, node) {
  while (lane.open.length > 0 && lane.open[lane.open.length - 1].end <= node.start) lane.open.pop()
  return lane.open[lane.open.length - 1] === node.above
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
