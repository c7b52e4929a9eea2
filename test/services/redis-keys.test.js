'use strict'

// Compares our table of keys with the server: for each command that both know, with COMMAND GETKEYS of a call.

const { test } = require('tap')
const { recordedArguments, commands } = require('../../lib/features/libraries/redis-keys')

const recordedCommand = (name, args, from) => name + recordedArguments(name, args, from)

const port = Number(process.env.SERVICES_REDIS_PORT)

// Commands for which the server needs more than words in order.
const CALLS = {
  XREAD: ['COUNT', '1', 'STREAMS', 'a', 'b', '0', '0'],
  XREADGROUP: ['GROUP', 'STREAMS', 'c', 'COUNT', '1', 'STREAMS', 'a', 'b', '>', '>'],
  MIGRATE: ['h', '1', 'k', '0', '5']
}

// The server also counts a shard's channel as a key, and the key in which SORT stores its result. These are not in our text.
const OTHERWISE = new Set(['SPUBLISH', 'SSUBSCRIBE', 'SUNSUBSCRIBE'])

test('the table finds the same keys as the server', async (t) => {
  const { Redis } = require('ioredis')
  const client = new Redis({ port, host: '127.0.0.1' })
  t.teardown(() => client.disconnect())
  const known = new Map((await client.call('COMMAND')).flatMap(withSubcommands))
  let compared = 0
  for (const [name, arity] of known) {
    if (OTHERWISE.has(name)) continue
    const [command, subcommand] = name.split('|')
    if (!commands.has(command)) continue
    for (const args of callsOf(name, command, subcommand, arity)) {
      const theirs = await client.call('COMMAND', 'GETKEYS', command, ...args).catch(({ message }) => /no key arguments/.test(message) ? [] : undefined)
      if (theirs === undefined) continue // the server does not accept the call
      const shown = recordedCommand(command, args, 0).split(' ').slice(1).filter((word) => word !== '?')
      t.same(shown, theirs, `${command} ${args.join(' ')}`)
      compared++
    }
  }
  t.ok(compared > 250, `${compared} calls compared`)
})

function withSubcommands ([name, arity, , , , , , , , more]) {
  return [[name.toUpperCase(), arity], ...(more ?? []).flatMap(withSubcommands)]
}

/** Calls of several lengths. The words show their positions, and there is a number of keys wherever one may be needed. */
function callsOf (name, command, subcommand, arity) {
  if (CALLS[name] !== undefined) return [CALLS[name]]
  const first = subcommand === undefined ? [] : [subcommand]
  const least = Math.abs(arity) - 1 - first.length
  const calls = []
  for (const more of arity < 0 ? [0, 1, 2, 3, 4, 5] : [0]) {
    const words = Array.from({ length: least + more }, (_, i) => `w${i}`)
    calls.push([...first, ...words])
    for (const at of [0, 1]) if (at < words.length) calls.push([...first, ...words.with?.(at, '2') ?? words.map((word, i) => i === at ? '2' : word)])
  }
  return calls
}
