// Shows where the time of a route goes: its last requests as one flame graph. The width of a box is the time of all spans in it. A click on
// a box makes it fill the width.

import { bdi, h, linkButton } from './dom.mjs'
import { sum } from './numbers.mjs'
import { count, duration, line, percent, plural } from './text.mjs'

const NARROWEST = 0.003 // of the width
const HUES = 7

/** @param {{ requests: number, root: object }} data the answer of /api/routes/flame */
export function flame ({ requests, root }) {
  const services = []
  const parents = new Map()
  settle(root, parents)
  const boxes = h('div.flame', { role: 'group', 'aria-label': 'Flame graph' })
  const path = h('p.sub', { 'aria-live': 'polite' })
  let top = root
  draw()
  return h('div', path, boxes)

  function draw () {
    const placed = place(top)
    const depth = placed.reduce((most, each) => Math.max(most, each.depth), 0)
    boxes.style.height = `calc(${depth + 1} * var(--flame-row))`
    boxes.replaceChildren(...placed.map(box))
    describe(top, placed.hidden)
  }

  function box ({ node, depth, left, width }) {
    if (!services.includes(node.service)) services.push(node.service)
    const own = node.totalMs > 0 ? Math.min(1, node.selfMs / node.totalMs) : 1
    return h('button', {
      type: 'button',
      class: `box ${node.errors > 0 ? 'bad' : ''}`,
      title: `${line(node.name)}\n${line(node.service)} · ${each(node)}`,
      'aria-label': `${line(node.name)}, ${each(node)}`,
      style: {
        '--hue': `var(--hue-${services.indexOf(node.service) % HUES})`, '--own': `${Math.round(18 + own * 37)}%`, left: `${left * 100}%`, width: `${width * 100}%`, top: `calc(${depth} * var(--flame-row))`
      },
      onclick: () => {
        top = node === top ? parents.get(node) ?? root : node
        draw()
        boxes.firstChild.focus()
      }
    }, width > 0.03 && [bdi(node.name, 120), width > 0.12 && h('span.quiet', ` ${duration(node.totalMs / requests)}`)])
  }

  function each (node) {
    return [
      `${duration(node.totalMs / requests)} a request`,
      `own time ${duration(node.selfMs / requests)}`,
      `${percent(node.width / root.width)} of all`,
      node.count !== requests && `${(node.count / requests).toFixed(node.count % requests === 0 ? 0 : 2)} per request`,
      node.errors > 0 && `${count(node.errors)} failed`
    ].filter(Boolean).join(', ')
  }

  function describe (node, hidden) {
    path.replaceChildren(
      ...(node === root ? [`${plural(requests, 'request')}, ${duration(root.totalMs / requests)} each. Click a box to look closer.`] : [h('b', line(node.name, 120)), ` ${each(node)} `, linkButton('Show all', () => { top = root; draw() })]),
      hidden > 0 ? ` ${plural(hidden, 'box is', 'boxes are')} too narrow to be drawn.` : '')
  }
}

// Parallel children may together take longer than their parent, so a box is at least as wide as its content.
function settle (root, parents) {
  const nodes = [root]
  for (let index = 0; index < nodes.length; index++) {
    for (const child of nodes[index].children) {
      parents.set(child, nodes[index])
      nodes.push(child)
    }
  }
  for (const node of nodes.toReversed()) {
    node.width = Math.max(node.totalMs, sum(node.children.map(({ width }) => width)), 1e-6)
  }
}

function place (top) {
  const placed = [{ node: top, depth: 0, left: 0, width: 1 }]
  placed.hidden = 0
  for (let index = 0; index < placed.length; index++) {
    const { node, depth, left } = placed[index]
    let cursor = left
    for (const child of node.children) {
      const width = child.width / top.width
      if (width >= NARROWEST) placed.push({ node: child, depth: depth + 1, left: cursor, width })
      else placed.hidden++
      cursor += width
    }
  }
  return placed
}
