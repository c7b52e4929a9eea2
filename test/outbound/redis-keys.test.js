'use strict'

// What is recorded of a Redis command. test/services compares the same table with a real server's COMMAND GETKEYS and runs the clients.

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { recordedArguments, commands } = require('../../lib/features/libraries/redis-keys')

const recordedCommand = (name, args, from) => name + recordedArguments(name, args, from)
const { tracedApp } = require('../support/traced-app')

const recorded = (line) => {
  const [name, ...args] = line.split(' ')
  return recordedCommand(name, args, 0)
}

// [as sent, as recorded]
const COMMANDS = [
  ['GET k', 'GET k'],
  ['SET k v EX 10', 'SET k ? ? ?'],
  ['GETSET k v', 'GETSET k ?'],
  ['PSETEX k 10 v', 'PSETEX k ? ?'],
  ['SISMEMBER k v', 'SISMEMBER k ?'],
  ['LREM k 1 v', 'LREM k ? ?'],
  ['GEOADD k 1 2 v', 'GEOADD k ? ? ?'],
  ['ZSCORE k v', 'ZSCORE k ?'],
  ['HSET k f v', 'HSET k ? ?'],
  ['MSET a v b v', 'MSET a ? b ?'],
  ['MGET a b', 'MGET a b'],
  ['DEL a b c', 'DEL a b c'],
  ['BLPOP a b 5', 'BLPOP a b ?'],
  ['RENAME a b', 'RENAME a b'],
  ['BITOP AND d a b', 'BITOP ? d a b'],
  ['EVAL script 2 a b v w', 'EVAL ? ? a b ? ?'],
  ['EVALSHA sha 0 v', 'EVALSHA ? ? ?'],
  ['EVAL script 9 v w', 'EVAL ? ? ? ?'],
  ['EVAL script -1 v', 'EVAL ? ? ?'],
  ['EVAL script v v', 'EVAL ? ? ?'],
  ['FCALL f 1 k v', 'FCALL ? ? k ?'],
  ['ZUNIONSTORE d 2 a b WEIGHTS 1 2', 'ZUNIONSTORE d ? a b ? ? ?'],
  ['ZUNIONSTORE d 7 v v', 'ZUNIONSTORE d ? ? ?'],
  ['LMPOP 2 a b LEFT', 'LMPOP ? a b ?'],
  ['MSETEX 2 a v b v EX 1', 'MSETEX ? a ? b ? ? ?'],
  ['XADD k * f v', 'XADD k ? ? ?'],
  ['XREAD COUNT 1 STREAMS a b 0 0', 'XREAD ? ? ? a b ? ?'],
  ['XREAD STREAMS a b v', 'XREAD ? ? ? ?'],
  ['XREADGROUP GROUP STREAMS v COUNT 1 STREAMS a >', 'XREADGROUP ? ? ? ? ? ? a ?'],
  ['XREAD v STREAMS a 0', 'XREAD ? ? ? ?'],
  ['XGROUP create k g 0', 'XGROUP ? k ? ?'],
  ['ACL SETUSER v >v', 'ACL ? ? ?'],
  ['OBJECT ENCODING k', 'OBJECT ? k'],
  ['ACL v', 'ACL ?'],
  ['AUTH v v', 'AUTH ? ?'],
  ['HELLO 3 AUTH v v', 'HELLO ? ? ? ?'],
  ['CONFIG SET requirepass v', 'CONFIG ? ? ?'],
  ['MIGRATE h 1 k 0 5 AUTH v', 'MIGRATE ? ? k ? ? ? ?'],
  ['PUBLISH c v', 'PUBLISH ? ?'],
  ['JSON.SET k $ v', 'JSON.SET k ? ?'],
  ['MYMODULE.PUT v v', 'MYMODULE.PUT']
]

test('keys are recorded, every other argument is ?, and an unknown command is only its name', async (t) => {
  for (const [sent, expected] of COMMANDS) t.equal(recorded(sent), expected, sent)
})

test('no command shows an argument that is not a key, in any position', async (t) => {
  for (const name of commands.keys()) {
    for (const args of [[], ['v'], ['1', 'v'], ['v', '1', 'v'], [{}, Symbol('v'), null, undefined, Buffer.from('v'), () => 'v']]) {
      t.doesNotThrow(() => recordedCommand(name, args, 0), name)
    }
    t.notMatch(recordedCommand(name, [Buffer.from('v'), Buffer.from('v'), Buffer.from('v')], 0), /v/, 'bytes are never shown')
  }
})

test('the recorded text of a command is limited, whatever its length', async (t) => {
  t.ok(recordedCommand('MGET', Array.from({ length: 1e6 }, (_, i) => `key${i}`), 0).length <= 4096)
  t.ok(recordedCommand('SADD', ['k', ...Array.from({ length: 1e6 }, () => 'v')], 0).length <= 4096)
  t.ok(recordedCommand('GET', ['x'.repeat(10e6)], 0).length <= 4096)
})

const server = { database: 2, serverAddress: 'redis.internal', serverPort: 6379 }

// As the clients publish them. Their own sanitizers do not remove these arguments.
const PUBLISHED = [
  ['node-redis:command', { command: 'EVAL', args: ['EVAL', 'return "SECRET"', '1', 'jobs:7', 'SECRET'] }, 'EVAL ? ? jobs:7 ?'],
  ['node-redis:command', { command: 'SISMEMBER', args: ['SISMEMBER', 'users', 'SECRET'] }, 'SISMEMBER users ?'],
  ['node-redis:command', { command: 'ACL', args: ['ACL', 'SETUSER', 'bob', '>SECRET'] }, 'ACL ? ? ?'],
  ['node-redis:command', { command: 'PSETEX', args: ['PSETEX', 'k', '100', 'SECRET'] }, 'PSETEX k ? ?'],
  ['node-redis:command', { command: 'my.command', args: ['my.command', 'SECRET'] }, 'MY.COMMAND'],
  ['ioredis:command', { command: 'evalsha', args: ['c0ffee', '1', 'jobs:7', 'SECRET'] }, 'EVALSHA ? ? jobs:7 ?'],
  ['ioredis:command', { command: 'zscore', args: ['k', 'SECRET'] }, 'ZSCORE k ?'],
  ['ioredis:command', { command: 'get', args: ['k'] }, 'GET k'],
  ['ioredis:command', { command: 'get', args: 'SECRET' }, 'GET'],
  ['ioredis:command', { command: 'get\r\nSECRET', args: [] }, undefined]
]

test('commands published by redis and ioredis have their keys and no values', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    routes: (app) => app.get('/', async () => {
      for (const [channel, call] of PUBLISHED) {
        await diagnosticsChannel.tracingChannel(channel).tracePromise(async () => 'OK', { ...call, ...server })
      }
      return 'ok'
    })
  })
  await app.inject('/')
  const calls = (await collector.spans()).filter(({ kind }) => kind === 'CLIENT')
  t.same(calls.map(({ attributes }) => attributes['db.query.text']), PUBLISHED.map(([, , text]) => text))
  t.equal(calls[4].name, 'MY.COMMAND')
  t.equal(calls[4].attributes['db.operation.name'], 'MY.COMMAND')
  t.equal(calls.at(-1).name, 'redis', 'an invalid command name is not recorded')
  t.notMatch(JSON.stringify(calls), /SECRET|secret/)
})
