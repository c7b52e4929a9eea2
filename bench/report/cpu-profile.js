'use strict'

// A V8 CPU profile → the time in each group of code and in each function, per request.

const path = require('node:path')

const root = process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '../..')

module.exports = readProfile

// → { groups: { name: µs per request }, functions: [{ name, place, micros }], the dearest first }
function readProfile ({ nodes, samples, timeDeltas }, requests) {
  const selfMicros = new Map()
  for (let i = 0; i < samples.length; i++) selfMicros.set(samples[i], (selfMicros.get(samples[i]) ?? 0) + timeDeltas[i])

  const groups = {}
  const functions = new Map()
  for (const { node, callers } of walk(nodes)) {
    const { id, callFrame } = node
    const micros = (selfMicros.get(id) ?? 0) / requests
    if (micros === 0 || callFrame.functionName === '(idle)' || callFrame.url === 'node:inspector') continue
    const group = groupOf(callFrame, callers)
    groups[group] = (groups[group] ?? 0) + micros
    const place = callFrame.url === '' ? '' : `${shortUrl(callFrame.url)}:${callFrame.lineNumber + 1}`
    const key = `${callFrame.functionName} ${place}`
    const entry = functions.get(key) ?? { name: callFrame.functionName || '(anonymous)', place, micros: 0 }
    entry.micros += micros
    functions.set(key, entry)
  }
  return { groups, functions: [...functions.values()].sort((a, b) => b.micros - a.micros) }
}

// Every node with the call frames above it, the nearest first.
function * walk (nodes) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const open = [{ node: nodes[0], callers: [] }]
  while (open.length > 0) {
    const { node, callers } = open.pop()
    yield { node, callers }
    for (const id of node.children ?? []) open.push({ node: byId.get(id), callers: [node.callFrame, ...callers] })
  }
}

// Under our hook runs the whole request, so what a function of ours calls is ours only where it is V8's or
// Node's own code in C++, or where it sends.
function groupOf (callFrame, callers) {
  const { functionName, url } = callFrame
  const isNative = url === '' && !functionName.startsWith('(')
  const room = roomOf(callFrame) ?? (isNative ? roomOf(callers[0]) : undefined)
  if (room !== undefined) return `light-trace ${room}`
  if (callers.some((caller) => roomOf(caller) === 'lib/export')) return 'Node\'s sockets, under `lib/export`'
  if (url === '') return isNative ? 'native and built-in functions' : functionName
  if (/^node:internal\/async_(local_storage|context_frame)/.test(url)) return 'AsyncLocalStorage'
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/')
  const file = shortUrl(url)
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)
  if (dependency) return dependency[1]
  return file.startsWith('bench/') ? 'the app' : file
}

// Of light-trace, or undefined.
function roomOf (callFrame) {
  const file = callFrame === undefined ? '' : shortUrl(callFrame.url)
  return file.startsWith('lib/') ? path.dirname(file) : undefined
}

function shortUrl (url) {
  const file = url.replace('file://', '')
  return file.startsWith(root + path.sep) ? file.slice(root.length + 1) : file
}
