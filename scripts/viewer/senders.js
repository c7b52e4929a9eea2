'use strict'

// The senders of test/senders/: OpenTelemetry's SDKs for JavaScript and Python, each installed next to the tests.

module.exports = { installSenders }

const { existsSync, readFileSync, rmSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const { run } = require('../run')
const { installClients } = require('../services/install')

const DIRECTORY = path.join(__dirname, '../../test/senders')
const VENV = path.join(DIRECTORY, '.venv')
const DEADLINE_MS = 5 * 60_000

/** @returns {Promise<string>} the Python that has the SDK */
async function installSenders () {
  await installClients(DIRECTORY)
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
