'use strict'

// Names the functions that callgrind knows only by address, from the map that V8 writes with --perf-basic-prof.

const fs = require('node:fs')
const path = require('node:path')

module.exports = { readSymbols, nameFunctions }

/** @returns {{ start: number, end: number, name: string }[]} in the order in which V8 wrote them */
function readSymbols (folder) {
  const file = fs.readdirSync(folder).find((name) => /^perf-\d+\.map$/.test(name))
  return fs.readFileSync(path.join(folder, file), 'utf8').trim().split('\n').map((line) => {
    const [, start, size, name] = /^(\S+) (\S+) (.*)$/.exec(line)
    const from = Number.parseInt(start, 16)
    return { start: from, end: from + Number.parseInt(size, 16), name: shorten(name) }
  })
}

// JS:*'onRequest /srv/light-trace/lib/fastify/hooks.js:40:22 → onRequest light-trace/fastify/hooks.js:40
//                /srv/light-trace/node_modules/fastify/lib/reply.js:9:2 → fastify/lib/reply.js:9
function shorten (name) {
  return name.replace(/^JS:[*+^~']*/, '')
    .replace(/ \/\S*\/node_modules\//, ' ')
    .replace(/ \/\S*\/lib\//, ' light-trace/')
    .replace(/:(\d+):\d+$/, ':$1')
}

/** @returns {Map<string, number>} instructions per request of each function; an address that was reused counts for its last function */
function nameFunctions (functions, symbols, requests) {
  const named = new Map()
  for (const [name, cost] of functions) {
    const known = name.startsWith('0x') ? nameAt(symbols, Number.parseInt(name, 16)) : name
    named.set(known, (named.get(known) ?? 0) + cost / requests)
  }
  return named
}

function nameAt (symbols, address) {
  return symbols.findLast(({ start, end }) => address >= start && address < end)?.name ?? '(JavaScript at an unknown address)'
}
