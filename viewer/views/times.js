'use strict'

// Where the time of a trace went: the time that each span spent itself, and the stretches of time that decided when the root ended.

/** The milliseconds of a node that no child covers. Children must be sorted by start. */
function selfTime ({ start, end, children }) {
  let covered = 0
  let until = start
  for (const child of children) {
    const from = Math.max(child.start, until)
    const to = Math.min(child.end, end)
    if (to <= from) continue
    covered += to - from
    until = to
  }
  return end - start - covered
}

/**
 * The critical path, computed backwards from the root's end: at each moment it is in the span that finished last. Time after a parent's end
 * did not delay the parent and does not count.
 * @returns {Map<object, [number, number][]>} stretches of time, oldest first
 */
function criticalPath (root) {
  const path = new Map()
  const todo = [frameOf(root, root.end)]
  while (todo.length > 0) {
    const frame = todo[todo.length - 1]
    const child = nextChild(frame)
    if (child === undefined) {
      mark(path, frame.node, frame.node.start, frame.cursor)
      todo.pop()
      continue
    }
    const end = Math.min(child.end, frame.cursor)
    mark(path, frame.node, end, frame.cursor)
    frame.cursor = Math.max(child.start, frame.node.start)
    todo.push(frameOf(child, end))
  }
  for (const stretches of path.values()) stretches.reverse()
  return path
}

function frameOf (node, cursor) {
  return { node, cursor, children: [...node.children].sort(byEnd) }
}

// Takes children from the end of the list: the child that ended last among those that started before the cursor.
function nextChild ({ children, cursor, node }) {
  while (children.length > 0) {
    const child = children.pop()
    if (child.start < cursor && child.end > node.start && child.duration > 0) return child
  }
}

function byEnd (a, b) {
  return a.end - b.end
}

function mark (path, node, from, to) {
  from = Math.max(from, node.start)
  if (to <= from) return
  const stretches = path.get(node)
  if (stretches === undefined) path.set(node, [[from, to]])
  else stretches.push([from, to])
}

module.exports = { selfTime, criticalPath }
