'use strict'

// Places the nodes and edges of the map of services: in layers from left to right, who calls to the left of who is called. Written here
// because dagre and elkjs are 15 to 100 times as large, and this map needs only one direction, boxes of one width and at most 200 of them.
//
//   1. Edges that close a circle are turned around, until the end.
//   2. A node's layer is the longest way to it. An edge across several layers gets a bend in each.
//   3. Within a layer, nodes are ordered by the mean place of their neighbours, which avoids crossings.
//   4. Each node is then placed as near to its neighbours as the others of its layer allow.

const NODE_WIDTH = 152 // as in services.css
// Heights, and of a map without labels: of a node, of an edge's end with its label beside it, of a bend.
const ROOMY = { node: 46, port: 24, bend: 16 }
const DENSE = { node: 40, port: 8, bend: 5 }
const PORTS_MAX = 14
const GAP_LEAST = 122 // a label's width
const GAP_MOST = 200
const GAP_Y = 20
const LABEL = { width: 118, height: 18 }
const HEAD = 8 // of an arrow
const LAYERS_MAX = 12
const SIDEWAYS = 40
const LOOP_HEIGHT = 26
const MARGIN = 16
const ROUNDS = 8
// With more edges, the page shows only the labels of the selected ones.
const LABELS_MAX = 60

module.exports = { layOut }

/**
 * @param {{ id: string }[]} nodes
 * @param {{ from: string, to: string }[]} edges
 * @param {number} space the width that should be enough, if it can
 * @returns {{ dense: boolean, width: number, height: number, nodes: object[], edges: object[] }} dense: there is no room for labels;
 *   nodes: { id, x, y, height, left, right }, by layer and then from the top, where `left` and `right` are the places in `edges` of the upper edges
 *   at these sides; edges: { from, to, path, head, x, y, left, right }, where x, y is the middle of the label, and `left` and `right` are ids of nodes
 */
function layOut (nodes, edges, space) {
  const dense = edges.length > LABELS_MAX
  const heights = dense ? DENSE : ROOMY
  // The order of ids and not of figures, so that a map that is live keeps its shape.
  /** @type {Map<string, any>} */
  const boxes = new Map([...nodes].sort(byId).map((node) => [node.id, { node, layer: 0, height: heights.node, above: 0, left: [], right: [] }]))
  /** @type {any[]} */
  const lines = [...edges].sort((a, b) => compare(a.from, b.from) || compare(a.to, b.to))
    .map((edge) => ({ edge, from: boxes.get(edge.from), to: boxes.get(edge.to) })).filter(({ from, to }) => from && to)
  const loops = lines.filter(({ from, to }) => from === to)
  for (const { from } of loops) from.above = LOOP_HEIGHT
  const straight = lines.filter(({ from, to }) => from !== to)
  setLayers([...boxes.values()], straight)
  const layers = layersOf([...boxes.values()], straight, heights)
  order(layers)
  place(layers)
  const gap = Math.round(Math.max(GAP_LEAST, Math.min(GAP_MOST, (space - 2 * MARGIN - layers.length * NODE_WIDTH) / (layers.length - 1))))
  const top = Math.min(...layers.flat().map(({ y, above }) => y - above))
  for (const box of layers.flat()) {
    box.x = MARGIN + box.layer * (NODE_WIDTH + gap)
    box.y += MARGIN - top
  }
  for (const box of layers.flat()) setPorts(box)
  const drawn = [...straight.map((line) => line.source.layer === line.target.layer ? drawBeside(line) : drawLine(line)), ...loops.map(drawLoop)].sort((a, b) => a.y - b.y)
  if (!dense) separate(drawn)
  const placed = layers.flat().filter(({ node }) => node !== undefined)
  const ends = [...drawn].sort((a, b) => a.y - b.y)
  drawn.sort((a, b) => a.x - b.x || a.y - b.y)
  const at = (line) => line && drawn.indexOf(line)
  return {
    dense,
    width: Math.max(...placed.map(({ x }) => x)) + NODE_WIDTH + MARGIN + (straight.some(({ source, target }) => source.layer === target.layer) ? SIDEWAYS : 0),
    height: Math.max(...placed.map(({ y, height }) => y + height)) + MARGIN,
    nodes: placed.map(({ node: { id }, x, y, height }) => ({
      id, x, y: Math.round(y), height: Math.round(height), left: at(ends.find(({ right }) => right === id)), right: at(ends.find(({ left }) => left === id))
    })),
    edges: drawn.map(({ edge: { from, to }, path, head, x, y, left, right }) => ({ from, to, path, head, x: Math.round(x), y: Math.round(y), left, right }))
  }
}

function setLayers (boxes, lines) {
  const state = new Map() // box → 1 while its callees are visited, 2 afterwards
  const out = new Map(boxes.map((box) => [box, []]))
  const called = new Set()
  for (const line of lines) {
    out.get(line.from).push(line)
    called.add(line.to)
  }
  const visit = (box) => {
    state.set(box, 1)
    for (const line of out.get(box)) {
      if (state.get(line.to) === 1) line.turned = true
      else if (!state.has(line.to)) visit(line.to)
    }
    state.set(box, 2)
    sorted.unshift(box)
  }
  const sorted = []
  for (const box of [...boxes.filter((each) => !called.has(each)), ...boxes]) if (!state.has(box)) visit(box)
  for (const line of lines) [line.source, line.target] = line.turned ? [line.to, line.from] : [line.from, line.to]
  const next = new Map(boxes.map((box) => [box, []]))
  for (const { source, target } of lines) next.get(source).push(target)
  for (const box of sorted) for (const target of next.get(box)) target.layer = Math.max(target.layer, box.layer + 1)
  if (boxes.every(({ layer }) => layer < LAYERS_MAX)) return
  // Where everyone calls everyone, the longest way visits them all. The shortest is used instead, and some calls are within a layer.
  for (const box of boxes) box.layer = called.has(box) ? Infinity : 0
  if (boxes.every(({ layer }) => layer === Infinity)) sorted[0].layer = 0
  const reached = new Set(boxes.filter(({ layer }) => layer === 0))
  for (const box of reached) {
    for (const { to } of out.get(box)) {
      if (to.layer === Infinity) to.layer = box.layer + 1
      reached.add(to)
    }
  }
  for (const box of boxes) if (box.layer === Infinity) box.layer = 0
  for (const line of lines) {
    line.turned = line.from.layer > line.to.layer
    ;[line.source, line.target] = line.turned ? [line.to, line.from] : [line.from, line.to]
  }
}

// Each line becomes a chain of boxes and bends, one in each layer.
function layersOf (boxes, lines, heights) {
  const layers = []
  const put = (box) => (layers[box.layer] ??= []).push(box)
  boxes.forEach(put)
  for (const line of lines) {
    if (line.source.layer === line.target.layer) continue
    line.chain = [line.source]
    for (let layer = line.source.layer + 1; layer < line.target.layer; layer++) {
      const bend = { layer, height: heights.bend, above: 0, left: [], right: [] }
      put(bend)
      line.chain.push(bend)
    }
    line.chain.push(line.target)
    for (let i = 1; i < line.chain.length; i++) {
      line.chain[i - 1].right.push(line.chain[i])
      line.chain[i].left.push(line.chain[i - 1])
    }
  }
  for (const box of boxes) box.height = Math.max(heights.node, heights.port * Math.min(PORTS_MAX, Math.max(box.left.length, box.right.length)))
  return layers
}

function order (layers) {
  const number = (layer) => layer.forEach((box, i) => { box.place = i })
  layers.forEach(number)
  for (let round = 0; round < ROUNDS; round++) {
    const down = round % 2 === 0
    for (const layer of down ? layers : layers.toReversed()) {
      for (const box of layer) box.wanted = mean(down ? box.left : box.right, ({ place }) => place) ?? box.place
      layer.sort((a, b) => a.wanted - b.wanted || a.place - b.place)
      number(layer)
    }
  }
}

function place (layers) {
  for (const layer of layers) {
    let y = 0
    for (const box of layer) {
      box.y = y + box.above
      y = box.y + box.height + GAP_Y
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const layer of round % 2 === 0 ? layers : layers.toReversed()) settle(layer)
  }
}

// The places nearest to the wanted ones that keep the order and the gaps: boxes that would overlap move together, to their mean.
function settle (layer) {
  const groups = []
  let offset = 0
  for (const box of layer) {
    offset += box.above
    const wanted = mean([...box.left, ...box.right], middle)
    groups.push({ boxes: [[box, offset]], sum: (wanted === undefined ? box.y : wanted - box.height / 2) - offset, count: 1 })
    offset += box.height + GAP_Y
    while (groups.length > 1 && groups.at(-2).sum / groups.at(-2).count > groups.at(-1).sum / groups.at(-1).count) {
      const last = groups.pop()
      const group = groups.at(-1)
      group.boxes.push(...last.boxes)
      group.sum += last.sum
      group.count += last.count
    }
  }
  for (const { boxes, sum, count } of groups) for (const [box, offset] of boxes) box.y = sum / count + offset
}

// The ends of the edges at each side of a node, in the order of where they lead.
function setPorts (box) {
  for (const side of ['left', 'right']) {
    const ends = box[side].map((other, index) => ({ other, index })).sort((a, b) => middle(a.other) - middle(b.other) || a.index - b.index)
    box[`${side}Ports`] = new Map(ends.map(({ index }, i) => [index, box.node === undefined ? middle(box) : box.y + box.height * (i + 0.5) / ends.length]))
    box[`${side}Next`] = 0
  }
}

function drawLine ({ edge, chain, turned }) {
  const points = []
  for (let i = 0; i < chain.length; i++) {
    const box = chain[i]
    if (i > 0) points.push([box.x, box.leftPorts.get(box.leftNext++)])
    if (i < chain.length - 1) points.push([box.x + NODE_WIDTH, box.rightPorts.get(box.rightNext++)])
  }
  let path = `M${points[0].map(Math.round)}`
  for (let i = 1; i < points.length; i++) {
    const [[x, y], [toX, toY]] = [points[i - 1], points[i]]
    const half = Math.round((x + toX) / 2)
    path += `C${half},${Math.round(y)} ${half},${Math.round(toY)} ${Math.round(toX)},${Math.round(toY)}`
  }
  const [x, y] = (turned ? points[0] : points.at(-1)).map(Math.round)
  const to = turned ? 1 : -1
  return { edge, path, head: `M${x},${y}l${to * HEAD},-4v8z`, x: x + to * (LABEL.width / 2 + HEAD), y, left: chain[0].node.id, right: chain.at(-1).node.id }
}

// An edge within a layer, at the right of both nodes.
function drawBeside ({ edge, source, target }) {
  const x = source.x + NODE_WIDTH
  const [y, toY] = [middle(source), middle(target)].map(Math.round)
  return { edge, path: `M${x},${y}C${x + SIDEWAYS},${y} ${x + SIDEWAYS},${toY} ${x},${toY}`, head: `M${x},${toY}l8,-4v8z`, x: x + SIDEWAYS * 0.75, y: (y + toY) / 2, left: source.node.id, right: target.node.id }
}

// A label that would be on another one is moved down.
function separate (lines) {
  for (const [i, line] of lines.entries()) {
    for (let j = 0; j < i; j++) {
      if (Math.abs(lines[j].x - line.x) < LABEL.width && Math.abs(lines[j].y - line.y) < LABEL.height) line.y = lines[j].y + LABEL.height
    }
  }
}

function drawLoop ({ edge, from: { x, y, node } }) {
  const right = x + NODE_WIDTH - 16
  return { edge, path: `M${right - 104},${Math.round(y)}v-14h104v14`, head: `M${right},${Math.round(y)}l-4,-8h8z`, x: right - 52, y: y - 14, left: node.id, right: node.id }
}

function middle ({ y, height }) {
  return y + height / 2
}

function mean (list, of) {
  return list.length === 0 ? undefined : list.reduce((sum, each) => sum + of(each), 0) / list.length
}

function byId (a, b) {
  return compare(a.id, b.id)
}

function compare (a, b) {
  return a < b ? -1 : a > b ? 1 : 0
}
