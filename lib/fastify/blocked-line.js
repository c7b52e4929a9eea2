'use strict'

// What ran while the event loop was blocked, and the line that is to blame: see blocked-loop.js.

const { findSourceMap } = require('node:module')
const { basename, join, sep } = require('node:path')
const { fileURLToPath } = require('node:url')
const { REQUEST_KEY } = require('../context/trace-context.js')
const { processState } = require('../runtime/process-state.js')

const OURS = typeof __filename === 'string' && basename(__filename) === 'blocked-line.js' ? join(__dirname, '..', sep) : '\0' // in a bundle: none
const FRAMES_MAX = 20
const STACKS_MAX = 64 // different lines of one block

// A command of the worker that waited longer than this waited for native code.
const LATE_MS = 40

/** What was seen during one block, by request and line. */
class Stacks {
  #seen = new Map()
  #takenAt = 0

  /** Takes the stack above the function `ours`. It stands for the time since the one before, which native code may have taken. */
  take (ours, at, askedMs) {
    const sites = callSites(ours)
    const isLate = askedMs > LATE_MS
    const request = processState.storage.getStore()?.getValue(REQUEST_KEY)
    const top = topOf(sites, isLate)
    const key = `${request?.spanId} ${sites[top]?.getFileName()}:${sites[top]?.getLineNumber()}`
    const ms = this.#takenAt === 0 ? askedMs : at - this.#takenAt
    this.#takenAt = at
    const stack = this.#seen.get(key)
    if (stack !== undefined) {
      stack.ms += ms
      stack.isLate &&= isLate
    } else if (this.#seen.size < STACKS_MAX) this.#seen.set(key, { sites, top, request, ms, isLate })
  }

  /** What took longest: the request whose code it was, and the code, where they are known. */
  longest () {
    const [stack] = [...this.#seen.values()].sort((a, b) => b.ms - a.ms)
    return { request: stack?.request, code: stack === undefined || stack.top === -1 ? null : codeOf(stack) }
  }
}

/** The frames of the code that was interrupted, without ours and that of the command itself. */
function callSites (ours) {
  const { prepareStackTrace, stackTraceLimit } = Error
  const holder = { stack: null }
  try {
    Error.stackTraceLimit = FRAMES_MAX
    Error.prepareStackTrace = (_, sites) => sites
    Error.captureStackTrace(holder, ours)
    return holder.stack.slice(1)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Error.prepareStackTrace = prepareStackTrace
  }
}

/**
 * The index of the frame that is to blame, or -1. Where the answer was late, that is the frame which called the native code, as far
 * as it can be told: what is on top has just been entered. A package under which no code of the application is left, such as
 * Fastify, has only gone on then; so have we at any time.
 */
function topOf (sites, isLate) {
  const top = sites.findIndex((site) => isOfUser(site) && !(isLate && isAtEntry(site)))
  const file = sites[top]?.getFileName() ?? ''
  const isOfPackage = file.includes('/node_modules/') || file.includes('\\node_modules\\')
  return file.startsWith(OURS) || (isLate && isOfPackage) ? -1 : top
}

/** Not Node's own, and no function that is built into V8. */
function isOfUser (site) {
  const file = site.getFileName()
  return typeof file === 'string' && file !== '' && !file.startsWith('node:')
}

function isAtEntry (site) {
  return site.getLineNumber() === site.getEnclosingLineNumber() && site.getColumnNumber() === site.getEnclosingColumnNumber()
}

/** @returns {{ attributes: object, text: string }} https://opentelemetry.io/docs/specs/semconv/registry/attributes/code/ */
function codeOf ({ sites, top, isLate }) {
  const frames = sites.map(frameOf)
  const { name, file, line, column } = frames[top]
  const attributes = {
    'code.function.name': name,
    'code.file.path': file,
    'code.line.number': line,
    'code.column.number': column,
    'code.stacktrace': frames.slice(isLate ? top : 0).map(({ text }) => `    at ${text}`).join('\n')
  }
  if (isLate) attributes['light_trace.blocked_loop.is_before_line'] = true
  return { attributes, text: ` ${isLate ? 'at or just before' : 'at'} ${name} (${file}:${line})` }
}

/** A frame, by its source where Node knows a source map: it does with --enable-source-maps. */
function frameOf (site) {
  let [file, line, column] = [site.getFileName() ?? '', site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0]
  try {
    const entry = findSourceMap(file)?.findEntry(line - 1, column - 1)
    if (entry !== undefined && 'originalSource' in entry) [file, line, column] = [entry.originalSource, entry.originalLine + 1, entry.originalColumn + 1]
    if (file.startsWith('file:')) file = fileURLToPath(file)
  } catch {} // a map or an address that is none
  const name = site.getFunctionName() || '<anonymous>'
  return { name, file, line, column, text: `${name} (${file === '' ? 'native' : `${file}:${line}:${column}`})` }
}

module.exports = { Stacks }
