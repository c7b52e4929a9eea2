'use strict'

// Collects what ran while the event loop was blocked, and determines the line to blame. See blocked-loop.js.

const { findSourceMap } = require('node:module')
const { basename, join, sep } = require('node:path')
const { fileURLToPath } = require('node:url')
const { REQUEST_KEY } = require('../../context/trace-context.js')
const { processState } = require('../../runtime/process-state.js')

const OURS = typeof __filename === 'string' && basename(__filename) === 'blocked-line.js' ? join(__dirname, '..', sep) : '\0' // matches nothing: a bundle has no such directory
const FRAMES_MAX = 20
const STACKS_MAX = 64 // different lines in one block

// Node reads modules for `import` with these. It compiles some of them to WebAssembly when they are first needed, which may be in a request.
const LOADERS = ['cjs-module-lexer', 'es-module-lexer', 'amaro'].map((name) => `node:internal/deps/${name}/`)

// While JavaScript runs, V8 executes the worker's command within 4 ms, even on a busy machine. A command that waited longer than this
// waited for native code, and ran at a line after that code.
const LATE_MS = 5

/** What ran during one block, by request and line. */
class Stacks {
  #stacks = new Map()
  #first = null
  #takenAt = 0

  /**
   * Takes a sample: records the stack above the function `ours`, and adds the time since the previous sample to it. If the command was
   * not late, the stack was seen running for that time.
   */
  take (ours, at, askedMs) {
    const sites = callSites(ours)
    const isLate = askedMs > LATE_MS
    const request = processState.storage.getStore()?.getValue(REQUEST_KEY)
    const site = sites[topOf(sites, isLate)]
    const key = isInLoader(sites) ? 'loader' : `${request?.spanId} ${site?.getFileName()}:${site?.getLineNumber()}`
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
   * Returns the request and the code that blocked the loop for `duration`, as far as they are known. If one line was seen running for
   * longer than the total time in which nothing was seen, that line is to blame. Otherwise native code may be: then the result is the
   * line that the most time passed before, marked as such. The time before the first sample counts for the first line. Node's own module
   * loader is neither the fault of a request nor of a line.
   */
  longest (duration) {
    const stacks = [...this.#stacks.values()]
    if (stacks.length === 0) return { request: undefined, code: null }
    this.#first.ms += Math.max(0, duration - sum(stacks, 'ms'))
    const seen = largest(stacks, 'seenMs')
    const isBefore = seen.seenMs < duration - sum(stacks, 'seenMs')
    const { sites, request, seenMs } = isBefore ? largest(stacks, 'ms') : seen
    if (isInLoader(sites)) return { request: undefined, code: codeOfLoader(sites) }
    const top = topOf(sites, seenMs === 0)
    return { request, code: top === -1 ? null : codeOf(sites, top, isBefore) }
  }
}

function sum (stacks, key) { return stacks.reduce((total, stack) => total + stack[key], 0) }

function largest (stacks, key) { return stacks.reduce((a, b) => b[key] > a[key] ? b : a) }

/** The frames of the interrupted code, without `ours` and the command itself. */
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
 * The index of the frame to blame, or -1. In a late sample, or a stack that was never seen running, functions that have just been
 * entered are skipped: the frame below them probably called the native code. If that frame is in a package, such as Fastify, it has
 * only continued after the native code and is not blamed. Our own code is never blamed.
 */
function topOf (sites, isLate) {
  const top = sites.findIndex((site, index) => isOfUser(site) && !isWasmOfNode(sites, index) && !(isLate && isAtEntry(site)))
  const file = sites[top]?.getFileName() ?? ''
  const isOfPackage = file.includes('/node_modules/') || file.includes('\\node_modules\\')
  return file.startsWith(OURS) || (isLate && isOfPackage) ? -1 : top
}

/** Whether a frame is neither Node's own nor a built-in function of V8. */
function isOfUser (site) {
  const file = site.getFileName()
  return typeof file === 'string' && file !== '' && !file.startsWith('node:')
}

/** Whether a frame is WebAssembly that Node has called, such as the HTTP parser of `fetch`. */
function isWasmOfNode (sites, index) {
  if (!isWasm(sites[index])) return false
  const caller = sites.slice(index).find((site) => !isWasm(site))?.getFileName()
  return typeof caller === 'string' && caller.startsWith('node:')
}

function isWasm (site) {
  const file = site.getFileName()
  return typeof file === 'string' && file.startsWith('wasm:')
}

/** Whether Node was reading a module for `import`. Functions of the user that are further down wait for that. */
function isInLoader (sites) {
  for (const site of sites) {
    const file = site.getFileName() ?? ''
    if (site.isAsync()) return false
    if (LOADERS.some((loader) => file.startsWith(loader))) return true
    if (isOfUser(site) && !isWasm(site)) return false
  }
  return false
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

function codeOfLoader (sites) {
  const stack = sites.map(frameOf).map(({ text }) => `    at ${text}`).join('\n')
  return { attributes: { 'light_trace.blocked_loop.is_module_loader': true, 'code.stacktrace': stack }, text: ' by Node, which was loading a module' }
}

/** Describes a frame, by its original source if Node has a source map (with --enable-source-maps). */
function frameOf (site) {
  let [file, line, column] = [site.getFileName() ?? '', site.getLineNumber() ?? 0, site.getColumnNumber() ?? 0]
  try {
    const entry = findSourceMap(file)?.findEntry(line - 1, column - 1)
    if (entry !== undefined && 'originalSource' in entry) [file, line, column] = [entry.originalSource, entry.originalLine + 1, entry.originalColumn + 1]
    if (file.startsWith('file:')) file = fileURLToPath(file)
  } catch {} // an invalid source map or URL
  const name = site.getFunctionName() || '<anonymous>'
  return { name, file, line, column, text: `${name} (${file === '' ? 'native' : `${file}:${line}:${column}`})` }
}

module.exports = { Stacks }
