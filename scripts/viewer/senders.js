'use strict'

// The senders of test/senders/: OpenTelemetry's SDKs for JavaScript and Python, each installed next to the tests,
// and a program with the one for Go.

module.exports = { installSenders }

const { existsSync, readFileSync, rmSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const { installGoSender } = require('../collectors/install')
const { run } = require('../run')
const { installClients } = require('../services/install')

const DIRECTORY = path.join(__dirname, '../../test/senders')
const VENV = path.join(DIRECTORY, '.venv')
const DEADLINE_MS = 5 * 60_000

/** @returns {Promise<{ LIGHT_TRACE_PYTHON: string, LIGHT_TRACE_GO_SENDER: string }>} the Python that has the SDK, and a program */
async function installSenders () {
  await installClients(DIRECTORY)
  return { LIGHT_TRACE_PYTHON: await installPython(), LIGHT_TRACE_GO_SENDER: await installGoSender(path.join(DIRECTORY, 'go')) }
}

async function installPython () {
  const requirements = path.join(DIRECTORY, 'requirements.txt')
  const wanted = readFileSync(requirements, 'utf8')
  const stamp = path.join(VENV, '.installed')
  const python = path.join(VENV, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return python
  console.log('installing the Python SDK…')
  rmSync(VENV, { recursive: true, force: true })
  await must('python3', ['-m', 'venv', VENV])
  await must(python, ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '-r', requirements])
  writeFileSync(stamp, wanted)
  return python
}

async function must (command, args) {
  const { code, output } = await run(command, args, { deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`)
}
