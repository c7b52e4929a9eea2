'use strict'

// Builds up a request tracer step by step. `steps` 1: a hook; 2: a record on request and response; 3: a context; 4: a listener of the
// response's end; 5: a clock. Step 4 is the floor.

const { AsyncLocalStorage } = require('node:async_hooks')
const { performance } = require('node:perf_hooks')
const bareKeptTick = require('./bare-kept-tick')

const kRecord = Symbol('bench.record')

class Record {
  constructor () {
    this.start = 0
    this.end = 0
    this.isOpen = true
  }
}

module.exports = ({ steps, ...options }) => {
  const storage = new AsyncLocalStorage()
  return {
    ...bareKeptTick(options),
    async register (app) {
      app.addHook('onRequest', hookOf(steps, storage))
    }
  }
}

function hookOf (steps, storage) {
  if (steps === 1) return (request, reply, done) => done()
  return (request, reply, done) => {
    const record = new Record()
    request[kRecord] = reply.raw[kRecord] = record
    if (steps >= 5) record.start = performance.now()
    if (steps >= 4) reply.raw.on('close', steps >= 5 ? onTimedClose : onClose)
    if (steps >= 3) storage.enterWith(record)
    done()
  }
}

function onClose () {
  this[kRecord].isOpen = false
}

function onTimedClose () {
  const record = this[kRecord]
  record.isOpen = false
  record.end = performance.now()
}
