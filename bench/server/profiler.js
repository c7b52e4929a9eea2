'use strict'

// The CPU profile of this process between two questions, by V8's own profiler.

const fs = require('node:fs')
const path = require('node:path')

const SAMPLE_EVERY_MICROS = 100

module.exports = { startProfile, stopProfile }

let session

async function startProfile () {
  const { Session } = require('node:inspector/promises')
  session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_EVERY_MICROS })
  await session.post('Profiler.start')
}

async function stopProfile ({ file }) {
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, JSON.stringify(profile))
}
