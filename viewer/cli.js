#!/usr/bin/env node
'use strict'

// npx light-trace. A command's modules are required only when it runs, so that the viewer listens as soon as possible.

const { parseArguments, UsageError, HELP } = require('./commands/arguments')
const { escaped } = require('./views/safe-text')

const COMMANDS = {
  serve: () => require('./commands/serve').serve,
  tail: () => require('./commands/tail').tail,
  trace: () => require('./commands/trace').trace,
  metrics: () => require('./commands/metrics').metrics,
  services: () => require('./commands/services').services,
  import: () => require('./commands/transfer').importFile,
  export: () => require('./commands/transfer').exportFile,
  check: () => require('./commands/check').check,
  mcp: () => require('./commands/mcp').mcp,
  help: () => () => { process.stdout.write(HELP) },
  version: () => () => { process.stdout.write(`${require('../package.json').version}\n`) }
}

const USAGE_EXIT_CODE = 2

main().catch((error) => {
  process.stderr.write(`light-trace: ${error.expected === true ? escaped(error.message) : error.stack}\n`)
  process.exitCode = error instanceof UsageError ? USAGE_EXIT_CODE : 1
})

async function main () {
  const parsed = parseArguments(process.argv.slice(2))
  await COMMANDS[parsed.command]()(parsed)
}
