'use strict'

// The load process. Over IPC it runs autocannon through its API, one run at a time, or a slice of plain requests.

const { answer } = require('../run/ipc')
const runLoad = require('./run-load')
const { runSlice } = require('./slices')

answer({
  run: runLoad,
  slice: ({ answer: text, ...slice }) => runSlice({ ...slice, answer: Buffer.from(text) })
})

process.send({ ready: true, node: process.version })
