'use strict'

// npx light-trace import <file>, export [file]: OTLP JSON, one object or one object per line.

const { createReadStream } = require('node:fs')
const { pipeline } = require('node:stream/promises')
const { Client, problem } = require('./client')
const { ownFile } = require('./save')
const { plural } = require('../views/safe-text')

async function importFile ({ operand, options }) {
  const client = new Client(options)
  if (await client.isThere()) return send(client, operand)
  if (options.url !== undefined) return send(client, operand) // throws an error that no viewer listens there
  const { openViewer, attend, SAY } = require('./serve')
  const viewer = await openViewer(options)
  await send(new Client({ port: viewer.port, token: viewer.token ?? undefined }), operand)
  SAY(`${viewer.url} shows the imported traces`)
  await attend(viewer, { program: null, options })
}

async function send (client, file) {
  const body = file === '-' ? process.stdin : createReadStream(file)
  let answer
  try {
    answer = JSON.parse(await client.text('/api/import', { method: 'POST', headers: { 'content-type': 'application/json' }, body }))
  } catch (error) {
    throw problem(`${file}: ${error.message}`)
  }
  const { spans, lines, traces, dropped } = answer
  process.stderr.write(`light-trace: ${plural(spans, 'span')} of ${plural(traces, 'trace')}${lines > 0 ? ` and ${plural(lines, 'log line')}` : ''} from ${file}${dropped > 0 ? `, ${dropped} of them not kept` : ''}\n`)
}

async function exportFile ({ operand, options }) {
  const response = await new Client(options).open('/api/export')
  if (operand === undefined || operand === '-') return pipeline(response, process.stdout, { end: false })
  await pipeline(response, ownFile(operand, 'w'))
}

module.exports = { importFile, exportFile }
