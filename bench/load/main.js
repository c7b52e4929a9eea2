'use strict'

// The load process: autocannon through its API, one run at a time, told over IPC.

const { answer } = require('../run/ipc')
const runLoad = require('./run-load')

answer({
  run: runLoad
})

process.send({ ready: true, node: process.version })
