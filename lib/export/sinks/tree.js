'use strict'

// Spans as a readable picture, a line for each, children two spaces under their parent, in start order:
//
//   SERVER GET /orders/:id ERROR error.type=500
//     INTERNAL load order
//       CLIENT GET
//
// `light-trace/testing` compares it, `exporter: 'console'` prints it.

const KINDS = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']
const STATUS_CODES = ['UNSET', 'OK', 'ERROR']

/**
 * @param {object[]} spans in start order, each with traceId, spanId and parentSpanId
 * @param {(span) => string} line
 * @returns {string} one line per span, without a newline at the end
 */
function drawTree (spans, line) {
  const known = new Set(spans.map(idOf))
  const roots = []
  const children = new Map()
  for (const span of spans) {
    const parent = parentOf(span)
    if (parent === idOf(span) || !known.has(parent)) roots.push(span)
    else if (children.has(parent)) children.get(parent).push(span)
    else children.set(parent, [span])
  }
  const lines = []
  // A stack and not recursion: a chain of children may be deeper than the call stack.
  const todo = roots.reverse().map((span) => ({ span, depth: 0 }))
  while (todo.length > 0) {
    const { span, depth } = todo.pop()
    lines.push('  '.repeat(depth) + line(span))
    const below = children.get(idOf(span)) ?? []
    for (let i = below.length - 1; i >= 0; i--) todo.push({ span: below[i], depth: depth + 1 })
  }
  return lines.join('\n')
}

/** 'SERVER GET /slow ERROR error.type=aborted' */
function spanLabel ({ kind, name, status, errorType }) {
  let line = `${kind} ${oneLine(name)}`
  if (status !== 'UNSET') line += ` ${status}`
  if (status === 'ERROR' && errorType !== undefined) line += ` error.type=${oneLine(String(errorType))}`
  return line
}

// A name is the user's, or a caller's: it must not draw lines of its own, nor control a terminal.
function oneLine (text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
}

function idOf ({ traceId, spanId }) {
  return traceId + spanId
}

function parentOf ({ traceId, parentSpanId }) {
  return parentSpanId === undefined ? undefined : traceId + parentSpanId
}

function kindName (kind) {
  return KINDS[kind] ?? 'INTERNAL'
}

function statusName (code) {
  return STATUS_CODES[code] ?? 'UNSET'
}

module.exports = { drawTree, spanLabel, kindName, statusName }
