'use strict'

// Runs programs in separate processes. Their environment has only those OTEL_* variables that are given.

const { execFile, spawn } = require('node:child_process')
const { join } = require('node:path')

const ROOT = join(__dirname, '../..')
const DEADLINE_MS = 30_000

/** @returns {Promise<{ code: number, stdout: string, stderr: string }>} code -1: it was killed at the deadline */
function runProgram (args, env = {}, cwd = ROOT) {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, env: { ...cleanEnvironment(), ...env }, timeout: DEADLINE_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
    })
  })
}

/** Starts a program that runs until it is killed. `output(pattern)` resolves to the match when it is printed. */
function startProgram (args, env = {}) {
  const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...cleanEnvironment(), ...env } })
  let text = ''
  const listeners = new Set()
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece) => {
      text += piece
      for (const listen of listeners) listen()
    })
  }
  return {
    output: (pattern) => new Promise((resolve, reject) => {
      const listen = () => {
        const match = pattern.exec(text)
        if (match !== null) resolve(match)
      }
      listeners.add(listen)
      child.once('exit', (code) => reject(new Error(`the program ended with ${code}: ${text}`)))
      listen()
    }),
    kill () {
      child.kill('SIGKILL')
    }
  }
}

function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('OTEL_') && name !== 'NODE_OPTIONS'))
}

/** Removes the parts that differ between runs. */
function steady (output) {
  return output
    .replace(/\d+\.\d+ ms/g, '… ms')
    .replace(/trace_id=[0-9a-f]{32}/g, 'trace_id=…')
    .replace(/^( *(?:traceId|spanId) +)[0-9a-f]+$/gm, '$1…')
    .replace(/^( *(?:network\.peer\.port|server\.port) +)\d+$/gm, '$1…')
}

module.exports = { runProgram, startProgram, steady, ROOT }
