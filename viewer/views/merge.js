'use strict'

// Merges spans with the same name (call-name.js), kind and service under the same parent into one node. The flame view of a route's requests
// and the comparison of two requests use it.

const { kindName } = require('../otlp/span-detail')
const { STATUS_ERROR } = require('../otlp/names')
const { rounded } = require('../store/summary')
const { callName } = require('./call-name')
const { layOut } = require('./layout')
const { selfTime } = require('./times')

const NODES_MAX = 5000
const DEPTH_MAX = 200

class Merged {
  constructor (name, kind, service, depth, sides) {
    this.name = name
    this.kind = kind
    this.service = service
    this.depth = depth
    this.children = new Map()
    this.cut = 0
    this.sides = Array.from({ length: sides }, () => ({ count: 0, totalMs: 0, selfMs: 0, errors: 0 }))
  }
}

class Tree {
  constructor (sides = 1) {
    this.sides = sides
    this.size = 0
    this.root = new Merged('', 'INTERNAL', '', -1, sides)
  }

  /** Adds a laid out node and everything below it. */
  add (top, side = 0) {
    const todo = [[top, this.root]]
    while (todo.length > 0) {
      const [node, above] = todo.pop()
      const merged = this.#child(above, node)
      if (merged === undefined) continue
      const figures = merged.sides[side]
      figures.count++
      figures.totalMs += node.duration
      figures.selfMs += node.span === null ? 0 : selfTime(node)
      if (node.span?.status === STATUS_ERROR) figures.errors++
      for (let i = node.children.length - 1; i >= 0; i--) todo.push([node.children[i], merged])
    }
  }

  #child (above, { span }) {
    const name = span === null ? 'parent not received' : callName(span).group
    const kind = span === null ? 'INTERNAL' : kindName(span.kind)
    const service = span === null ? '' : span.origin.service
    const key = `${kind}\n${service}\n${name}`
    let child = above.children.get(key)
    if (child === undefined) {
      if (this.size >= NODES_MAX || above.depth + 1 >= DEPTH_MAX) {
        above.cut++
        return undefined
      }
      this.size++
      above.children.set(key, child = new Merged(name, kind, service, above.depth + 1, this.sides))
    }
    return child
  }
}

/** The root node for GET /api/routes/flame, or null. @param {{ trace, span }[]} requests */
function flameOf (requests) {
  const tree = new Tree()
  for (const { trace, span } of requests) {
    const top = layOut(trace).nodes.find((node) => node.span === span)
    if (top !== undefined) tree.add(top)
  }
  const [root] = tree.root.children.values()
  return root === undefined ? null : flameNode(root)
}

// Recursive, but at most DEPTH_MAX deep.
function flameNode ({ name, service, kind, sides: [{ count, totalMs, selfMs, errors }], children, cut }) {
  return {
    name,
    service,
    kind,
    count,
    totalMs: rounded(totalMs),
    selfMs: rounded(selfMs),
    errors,
    children: [...children.values()].map(flameNode).sort((a, b) => b.totalMs - a.totalMs),
    ...(cut > 0 && { cut })
  }
}

/** The rows of GET /api/compare. */
function compareRows (a, b) {
  const tree = new Tree(2)
  for (const [side, trace] of [a, b].entries()) {
    for (const top of layOut(trace).roots) tree.add(top, side)
  }
  const rows = []
  for (const child of tree.root.children.values()) addRows(rows, child)
  return rows
}

function addRows (rows, { name, kind, service, depth, sides: [a, b], children }) {
  const row = {
    name,
    kind,
    service,
    depth,
    below: 0,
    aMs: rounded(a.totalMs),
    bMs: rounded(b.totalMs),
    aSelfMs: rounded(a.selfMs),
    bSelfMs: rounded(b.selfMs),
    aCount: a.count,
    bCount: b.count,
    aErrors: a.errors,
    bErrors: b.errors
  }
  const at = rows.push(row)
  for (const child of children.values()) addRows(rows, child)
  row.below = rows.length - at
}

module.exports = { flameOf, compareRows }
