'use strict'

// Makes a tree that can be drawn from the spans of a trace, even if the root or parents are missing, parents form a cycle, or clocks are
// hours off. Nothing here recurses, because a chain may be deeper than the call stack.

const { KIND_SERVER, KIND_CLIENT } = require('../otlp/names')

// A child that starts outside its parent by at most this is explained by the inaccuracy of timers.
const CLOCK_TOLERANCE_MS = 1

class Node {
  constructor (span, id) {
    this.span = span // null: not received
    this.id = id
    this.above = null
    this.children = []
    this.depth = 0
    this.below = 0
    this.start = 0 // milliseconds since the epoch, on the clock of the first root
    this.end = 0
    this.shift = 0
    this.cycle = false
    this.visited = false
  }

  get duration () { return this.end - this.start }
}

/** @returns {{ roots: Node[], nodes: Node[] }} nodes in display order: depth first, siblings by start */
function layOut (trace) {
  const nodes = trace.spans.map((span) => new Node(span, span.id))
  const byId = new Map()
  for (const node of nodes) if (!byId.has(node.id)) byId.set(node.id, node)
  const tops = []
  for (const node of nodes) hang(node, byId, tops)
  cutCycles(nodes, tops)
  for (const top of tops) placeTimes(top)
  tops.sort((a, b) => Number(b.span === trace.root) - Number(a.span === trace.root) || a.start - b.start)
  return { roots: tops, nodes: inOrder(tops) }
}

function hang (node, byId, tops) {
  const { parent } = node.span
  if (parent === '' || parent === node.id) {
    node.cycle = parent !== ''
    tops.push(node)
    return
  }
  let above = byId.get(parent)
  if (above === undefined) {
    byId.set(parent, above = new Node(null, parent))
    tops.push(above)
  }
  node.above = above
  above.children.push(node)
}

// A node that is not reachable from a top is in a cycle or below one. The cycle is cut at its earliest span.
function cutCycles (nodes, tops) {
  for (const top of tops) visit(top)
  for (const node of nodes) {
    if (node.visited) continue
    const seen = new Set()
    let at = node
    while (!seen.has(at)) {
      seen.add(at)
      at = at.above
    }
    let first = at
    for (let each = at.above; each !== at; each = each.above) if (each.span.startMs < first.span.startMs) first = each
    first.above.children.splice(first.above.children.indexOf(first), 1)
    first.above = null
    first.cycle = true
    tops.push(first)
    visit(first)
  }
}

function visit (top) {
  const todo = [top]
  while (todo.length > 0) {
    const node = todo.pop()
    node.visited = true
    for (const child of node.children) todo.push(child)
  }
}

function placeTimes (top) {
  const todo = [top]
  if (top.span === null) spanChildren(top)
  else place(top, top.span.startMs)
  while (todo.length > 0) {
    const node = todo.pop()
    for (const child of node.children) {
      child.shift = shiftOf(child, node)
      place(child, (child.span.startMs === 0 ? node.start : child.span.startMs) + child.shift)
      todo.push(child)
    }
    node.children.sort((a, b) => a.start - b.start)
  }
}

function place (node, start) {
  node.start = start
  node.end = start + node.span.durationMs
}

function spanChildren (node) {
  node.start = Infinity
  node.end = -Infinity
  for (const { span } of node.children) {
    node.start = Math.min(node.start, span.startMs)
    node.end = Math.max(node.end, span.startMs + span.durationMs)
  }
}

// The milliseconds by which the clock of another process is corrected, so that a child does not start before its parent, nor an answer after
// its call. An answer that starts within its call stays where it is, even if it ends later: a busy event loop ends spans late, and a clock that
// is ahead by less than the call took looks the same.
function shiftOf (child, parent) {
  const { span } = child
  if (parent.span === null || span.startMs === 0) return 0
  if (span.origin.resourceKey === parent.span.origin.resourceKey) return parent.shift
  const before = parent.start - span.startMs
  const after = span.startMs - parent.end
  const isAnswer = span.kind === KIND_SERVER && parent.span.kind === KIND_CLIENT
  if (before <= CLOCK_TOLERANCE_MS && (!isAnswer || after <= CLOCK_TOLERANCE_MS)) return 0
  const slack = parent.duration - span.durationMs
  return before + (isAnswer && slack > 0 ? slack / 2 : 0)
}

function inOrder (tops) {
  const nodes = []
  const todo = [...tops].reverse()
  while (todo.length > 0) {
    const node = todo.pop()
    node.depth = node.above === null ? 0 : node.above.depth + 1
    nodes.push(node)
    for (let i = node.children.length - 1; i >= 0; i--) todo.push(node.children[i])
  }
  for (let i = nodes.length - 1; i >= 0; i--) if (nodes[i].above !== null) nodes[i].above.below += nodes[i].below + 1
  return nodes
}

module.exports = { layOut }
