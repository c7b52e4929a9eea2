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
  for (const { id, callFrame } of nodes) {
    const micros = (selfMicros.get(id) ?? 0) / requests
    if (micros === 0 || callFrame.functionName === '(idle)' || callFrame.url === 'node:inspector') continue
    const group = groupOf(callFrame)
    groups[group] = (groups[group] ?? 0) + micros
    const place = callFrame.url === '' ? '' : `${shortUrl(callFrame.url)}:${callFrame.lineNumber + 1}`
    const key = `${callFrame.functionName} ${place}`
    const entry = functions.get(key) ?? { name: callFrame.functionName || '(anonymous)', place, micros: 0 }
    entry.micros += micros
    functions.set(key, entry)
  }
  return { groups, functions: [...functions.values()].sort((a, b) => b.micros - a.micros) }
}

function groupOf ({ functionName, url }) {
  if (url === '') return functionName.startsWith('(') ? functionName : 'native and built-in functions'
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/')
  const file = shortUrl(url)
  const dependency = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)
  if (dependency) return dependency[1]
  return file.startsWith('lib/') ? `light-trace ${path.dirname(file)}` : file.startsWith('bench/') ? 'the app' : file
}

function shortUrl (url) {
  const file = url.replace('file://', '')
  return file.startsWith(root + path.sep) ? file.slice(root.length + 1) : file
}
