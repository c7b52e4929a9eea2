'use strict'

// ioredis publishes a command when it is written. One that is sent before the connection is ready waits, and is written
// in the context of whoever opened the connection. What `traceClient(redis)` adds is that the command's own context is
// remembered while it waits, on that one object: its own `sendCommand`, by which ioredis sends the waiting ones again.

const { activeContext, tracerIn } = require('./calls')

const waiting = new WeakMap() // command → context of who sent it

function tracedSendCommand (sendCommand) {
  return function (command) {
    if (this.status === 'ready' && !waiting.has(command)) return Reflect.apply(sendCommand, this, arguments)
    const context = waiting.get(command)
    const tracer = tracerIn(context)
    if (tracer === null) {
      const sender = activeContext()
      if (sender !== undefined && command !== null && typeof command === 'object') waiting.set(command, sender)
      return Reflect.apply(sendCommand, this, arguments)
    }
    return tracer.contextManager.with(context, sendCommand, this, ...arguments)
  }
}

module.exports = { tracedSendCommand }
