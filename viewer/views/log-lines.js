'use strict'

// Places log lines among the spans of a trace, and formats them as text.

const { plain } = require('../otlp/attributes')
const { levelName } = require('../otlp/log-record')

const TEXT_MAX = 2000
const STACK = 'exception.stacktrace'
const MESSAGE = 'exception.message'

/** A log line in the waterfall. */
class LineNode {
  constructor (line, index, above) {
    this.line = line
    this.id = `l${index}` // differs from all span ids
    this.span = null
    this.above = above
    this.depth = above === null ? 0 : above.depth + 1
    this.below = 0
    this.start = line.timeMs + (above?.shift ?? 0)
  }
}

/**
 * Returns the laid out nodes of a trace with its log lines. A line is placed below the span that wrote it, before the children of that span
 * that started later. If the span was not received, the line is placed below the first node.
 */
function withLines (trace, nodes) {
  if (trace.lines.length === 0) return nodes
  const byId = new Map(nodes.toReversed().map((node) => [node.id, node]))
  const linesOf = new Map()
  for (const [index, line] of trace.lines.entries()) {
    const above = byId.get(line.spanId) ?? nodes[0] ?? null
    if (!linesOf.has(above)) linesOf.set(above, [])
    linesOf.get(above).push(new LineNode(line, index, above))
  }
  for (const lines of linesOf.values()) lines.sort((a, b) => b.start - a.start) // newest first: pop() takes the oldest
  const all = []
  const open = [] // the remaining lines of the current node and its ancestors, outermost first
  const place = (lines, until) => { while (lines?.length > 0 && lines.at(-1).start < until) all.push(lines.pop()) }
  for (const node of nodes) {
    while (open.length > node.depth) place(open.pop(), Infinity)
    place(open.at(-1), node.start)
    all.push(node)
    open.push(linesOf.get(node))
  }
  while (open.length > 0) place(open.pop(), Infinity)
  place(linesOf.get(null), Infinity)
  for (const node of all) node.below = 0
  for (let i = all.length - 1; i >= 0; i--) if (all[i].above !== null) all[i].above.below += all[i].below + 1
  return all
}

/** @returns {{ level: string, text: string, rest: string }} `rest`: the attributes as `key=value`, without the stack. `text` and `rest` are cut and untrusted */
function lineText (line) {
  const { body, attributes, eventName } = line.read()
  const type = attributes.find(({ key }) => key === 'exception.type')?.value
  const message = attributes.find(({ key }) => key === MESSAGE)?.value
  const text = textOf(body) || (message === undefined ? eventName : `${type}: ${message}`)
  let rest = ''
  for (const attribute of attributes) {
    if (attribute.key === STACK || (attribute.key === MESSAGE && attribute.value === text) || rest.length > TEXT_MAX) continue
    rest += `${rest === '' ? '' : ' '}${attribute.key}=${textOf(attribute)}`
  }
  return { level: levelName(line.severity), text: text.slice(0, TEXT_MAX), rest: rest.slice(0, TEXT_MAX) }
}

function textOf (attribute) {
  const value = plain(attribute)
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)
}

/** One line in the answer of GET /api/logs. */
function lineJson (line) {
  const { trace } = line
  return {
    order: line.order,
    timeMs: line.timeMs,
    ...lineText(line),
    service: line.origin.service,
    trace: line.traceId || null,
    row: trace === null ? null : `l${line.index}`
  }
}

module.exports = { withLines, lineText, lineJson }
