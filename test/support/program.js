'use strict'

// A program in a process of its own, to its end. Its environment has no OTEL_* but what is given.

const { execFile } = require('node:child_process')
const { join } = require('node:path')

const ROOT = join(__dirname, '../..')
const DEADLINE_MS = 30_000

/** @returns {Promise<{ code: number, stdout: string, stderr: string }>} code -1: it was ended at the deadline */
function runProgram (args, env = {}) {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: ROOT, env: { ...cleanEnvironment(), ...env }, timeout: DEADLINE_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
    })
  })
}

function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('OTEL_') && name !== 'NODE_OPTIONS'))
}

/** What differs from run to run, taken out. */
function steady (output) {
  return output
    .replace(/\d+\.\d+ ms/g, '… ms')
    .replace(/trace_id=[0-9a-f]{32}/g, 'trace_id=…')
    .replace(/^( *(?:traceId|spanId) +)[0-9a-f]+$/gm, '$1…')
    .replace(/^( *(?:network\.peer\.port|server\.port) +)\d+$/gm, '$1…')
}

module.exports = { runProgram, steady, ROOT }
