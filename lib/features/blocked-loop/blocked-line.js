'use strict'

// What ran while the event loop was blocked, and the line that is to blame: see blocked-loop.js.

const { findSourceMap } = require('node:module')
const { basename, join, sep } = require('node:path')
const { fileURLToPath } = require('node:url')
const { REQUEST_KEY } = require('../../context/trace-context.js')
const { processState } = require('../../runtime/process-state.js')

const OURS = typeof __filename === 'string' && basename(__filename) === 'blocked-line.js' ? join(__dirname, '..', sep) : '\0' // in a bundle: none
const FRAMES_MAX = 20
const STACKS_MAX = 64 // different lines of one block

// V8 answers within 4 ms on a busy machine while JavaScript runs. A command of the worker that waited longer than this waited for
// native code, and the line that answers came after it.
const LATE_MS = 5

/** What ran during one block, by request and line. */
class Stacks {
  #stacks = new Map()
  #first = null
  #takenAt = 0

  /** Takes the stack above the function `ours`. It stands for the time since the one before, and was seen to run if it came at once. */
  take (ours, at, askedMs) {
    const sites = callSites(ours)
    const isLate = askedMs > LATE_MS
    const request = processState.storage.getStore()?.getValue(REQUEST_KEY)
    const site = sites[topOf(sites, isLate)]
    const key = `${request?.spanId} ${site?.getFileName()}:${site?.getLineNumber()}`
    const ms = this.#first === null ? 0 : at - this.#takenAt
    this.#takenAt = at
    if (!this.#stacks.has(key) && this.#stacks.size < STACKS_MAX) this.#stacks.set(key, { sites, request, ms: 0, seenMs: 0 })
    const stack = this.#stacks.get(key)
    if (stack === undefined) return
    this.#first ??= stack
    stack.ms += ms
    if (!isLate) stack.seenMs += ms
  }

  /**
   * What blocked the loop for `duration`: the request whose code it was, and the code, where they are known. The line that was seen
   * to run for longer than all that was not seen did it, whatever the rest was. Else native code may have: then it is the line that
   * most time came before, which the first line also has for what came before the first look, and it is said to be no more than that.
   */
  longest (duration) {
    const stacks = [...this.#stacks.values()]
    if (stacks.length === 0) return { request: undefined, code: null }
    this.#first.ms += Math.max(0, duration - sum(stacks, 'ms'))
    const seen = largest(stacks, 'seenMs')
    const isBefore = seen.seenMs < duration - sum(stacks, 'seenMs')
    const { sites, request, seenMs } = isBefore ? largest(stacks, 'ms') : seen
    const top = topOf(sites, seenMs === 0)
    return { request, code: top === -1 ? null : codeOf(sites, top, isBefore) }
  }
}

function sum (stacks, key) { return stacks.reduce((total, stack) => total + stack[key], 0) }

function largest (stacks, key) { return stacks.reduce((a, b) => b[key] > a[key] ? b : a) }

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
 * The index of the frame that is to blame, or -1. Where it was late, or was only met and not seen to run, that is the frame which
 * called the native code, as far as it can be told: what is on top has just been entered. A package, such as Fastify, has only gone
 * on then; so have we at any time.
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
function codeOf (sites, top, isBefore) {
  const frames = sites.map(frameOf)
  const { name, file, line, column } = frames[top]
  const attributes = {
    'code.function.name': name,
    'code.file.path': file,
    'code.line.number': line,
    'code.column.number': column,
    'code.stacktrace': frames.slice(isBefore ? top : 0).map(({ text }) => `    at ${text}`).join('\n')
  }
  if (isBefore) attributes['light_trace.blocked_loop.is_before_line'] = true
  return { attributes, text: ` ${isBefore ? 'at or just before' : 'at'} ${name} (${file}:${line})` }
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
