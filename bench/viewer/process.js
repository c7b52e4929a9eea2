'use strict'

// Runs the viewer in its own process, as a user starts it.

const { spawn } = require('node:child_process')
const { readFileSync } = require('node:fs')
const path = require('node:path')

const CLI = path.join(__dirname, '../../viewer/cli.js')
const TICKS_PER_SECOND = 100 // on Linux

/** @returns {Promise<{ url, pid, child, listeningAfterMs, cpuSeconds (), rssBytes (), end () }>} */
function startCommand (args, { cwd, ready = /(http:\/\/localhost:\d+)/ } = {}) {
  const startedAt = performance.now()
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:OTEL_|NODE_OPTIONS)/.test(name)))
  const child = spawn(process.execPath, [CLI, '--port', '0', ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve) => child.on('exit', resolve))
  let text = ''
  return new Promise((resolve, reject) => {
    const read = (piece) => {
      text += piece
      const match = ready.exec(text)
      const url = /(http:\/\/localhost:\d+)/.exec(text)
      if (match === null || url === null) return
      resolve({
        url: url[1],
        match,
        pid: child.pid,
        listeningAfterMs: performance.now() - startedAt,
        cpuSeconds: () => cpuSeconds(child.pid),
        rssBytes: () => status(child.pid, 'VmRSS'),
        peakRssBytes: () => status(child.pid, 'VmHWM'),
        end () {
          child.kill('SIGTERM')
          return ended
        }
      })
    }
    child.stdout.setEncoding('utf8').on('data', read)
    child.stderr.setEncoding('utf8').on('data', read)
    child.on('exit', () => reject(new Error(text)))
  })
}

// utime and stime, in ticks; undefined without /proc.
function cpuSeconds (pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  } catch {}
}

function status (pid, name) {
  try {
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024
  } catch {}
}

function median (values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

module.exports = { startCommand, median }
