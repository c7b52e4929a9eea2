'use strict'

// The load process: autocannon through its API, one run at a time, or a slice of plain requests, or a window of them
// at a fixed rate; told over IPC.

const { answer } = require('../run/ipc')
const runLoad = require('./run-load')
const { runSlice } = require('./slices')
const runPaced = require('./paced')

answer({
  run: runLoad,
  slice: ({ answer: text, ...slice }) => runSlice({ ...slice, answer: Buffer.from(text) }),
  paced: ({ answer: text, ...window }) => runPaced({ ...window, answer: Buffer.from(text) })
})

process.send({ ready: true, node: process.version })
