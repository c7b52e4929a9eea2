'use strict'

// Places log lines among the spans of a trace, and formats them as text.

const { plain } = require('../otlp/attributes')
const { levelName } = require('../otlp/log-record')

const TEXT_MAX = 2000
const REQUEST_ID_MAX = 200
const NONE = { type: 'empty', value: null }
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

/**
 * @returns {{ level: string, text: string, rest: string }} `rest`: the attributes as `key=value`, without the stack and with rounded numbers.
 *   `text` and `rest` are cut and untrusted
 */
function lineText (line) {
  return textOfRecord(line, line.read())
}

function textOfRecord (line, { body, attributes, eventName }) {
  const type = attributes.find(({ key }) => key === 'exception.type')?.value
  const message = attributes.find(({ key }) => key === MESSAGE)?.value
  const text = textOf(body) || (message === undefined ? eventName : `${type}: ${message}`)
  let rest = ''
  for (const attribute of attributes) {
    if (attribute.key === STACK || (attribute.key === MESSAGE && attribute.value === text) || rest.length > TEXT_MAX) continue
    rest += `${rest === '' ? '' : ' '}${attribute.key}=${isResponseTime(attribute) ? `${roundedMs(attribute.value)} ms` : textOf(attribute)}`
  }
  return { level: levelName(line.severity), text: text.slice(0, TEXT_MAX), rest: rest.slice(0, TEXT_MAX) }
}

function textOf (attribute) {
  const value = plain(attribute)
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value, roundedNumber)
}

function roundedNumber (key, value) {
  if (typeof value !== 'number' || Number.isInteger(value)) return value
  return Math.abs(value) < 1e6 ? Number(value.toPrecision(6)) : Math.round(value)
}

function isResponseTime ({ key, value }) {
  return key === 'responseTime' && typeof value === 'number'
}

function roundedMs (ms) {
  return ms < 100 ? Number(ms.toPrecision(3)) : Math.round(ms)
}

/** One line in the answer of GET /api/logs. */
function lineJson (line) {
  const record = line.read()
  return {
    order: line.order,
    timeMs: line.timeMs,
    ...textOfRecord(line, record),
    service: line.origin.service,
    ...placeOf(line),
    request: requestOf(line, record)
  }
}

/** The trace of a line, and its row there. */
function placeOf (line) {
  return { trace: line.traceId || null, row: line.trace === null ? null : `l${line.index}` }
}

/**
 * What Fastify's line about the start or the end of a request says, or undefined for all other lines.
 * @returns {{ of: string, method: string, url: string } | { of: string, status: number, durationMs: number } | undefined} `of`: the same in both lines
 */
function requestOf (line, { body, attributes }) {
  if (body.value !== 'incoming request' && body.value !== 'request completed') return undefined
  const valueOf = (key) => plain(attributes.find((each) => each.key === key) ?? NONE)
  const id = valueOf('reqId')
  if (typeof id !== 'string') return undefined
  const of = `${line.origin.service} ${line.traceId} ${id.slice(0, REQUEST_ID_MAX)}`
  if (body.value === 'incoming request') {
    const { method, url } = valueOf('req') ?? {}
    return typeof method === 'string' && typeof url === 'string' ? { of, method: method.slice(0, TEXT_MAX), url: url.slice(0, TEXT_MAX) } : undefined
  }
  const status = valueOf('res')?.statusCode
  const durationMs = valueOf('responseTime')
  return typeof status === 'number' && typeof durationMs === 'number' ? { of, status, durationMs } : undefined
}

module.exports = { withLines, lineText, lineJson, placeOf }
