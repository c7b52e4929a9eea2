'use strict'

// Parses the command line. Our options come before the app's name, and everything after the name belongs to the app.

const { existsSync } = require('node:fs')
const { delimiter, join } = require('node:path')

const HELP = `light-trace shows what your Fastify app does.

  npx light-trace app.js [args]      run the app and show its requests
  npx light-trace npm start          run a command and trace every Node process in it
  npx light-trace                    show what other apps send to ports 4318 (OTLP over HTTP) and 4317 (gRPC)

  npx light-trace tail [app.js]      print requests as trees in the terminal
  npx light-trace trace <id>         print one request: an id, its first 8 digits, last, slowest or failed
  npx light-trace metrics [name]     list the metrics of the last hour, or print one
  npx light-trace services [name]    print who calls whom, or what one service depends on
  npx light-trace import <file>      load OTLP JSON into the viewer
  npx light-trace export [file]      write all traces as OTLP JSON, one per line
  npx light-trace check <file>       compare a --save file with another one, or with a budget
  npx light-trace mcp                run an MCP server for AI assistants over stdio, read-only

Options (put them before the app's name):
  --port <n>         the viewer's port: 4318 by default, or the next free one
  --grpc-port <n>    the port for OTLP over gRPC: 4317 by default, or the next free one
  --watch            restart the app when its files change
  --stay             keep the viewer running after the app has ended
  --max-bytes <n>    memory for traces, log lines and metrics: 64mb by default; the oldest are dropped first
  --save <file>      append traces and logs to a file, as OTLP JSON
  --host <address>   let other machines connect; reading needs the token in the printed URL
  --editor <name>    the editor that opens files from the page: vscode (default), cursor, zed, …, none
  --by <key>         trace: print a table of the time by span name (name) or by service (service)
  --attributes       trace: print every attribute
  --kind <kind>      metrics: gauge, counter, sum, histogram or summary, if several metrics have the name
  --json             trace, metrics, services: print JSON
  --against <file>   check: an earlier --save file
  --budget <file>    check: a JSON file; the exit code is 1 if a request exceeds it
  --markdown         check: print Markdown, for a pull request
  --url <url>        tail, trace, metrics, services, mcp, import, export: the viewer's URL; default: --port on this machine
Options of Node (--inspect, --env-file=.env, --import tsx, …) are passed on to the app.
`

const COMMANDS = new Set(['tail', 'trace', 'metrics', 'services', 'mcp', 'import', 'export', 'check', 'help', 'version'])

// name → the parser of its value, or true for an option without a value.
const OPTIONS = {
  port,
  'grpc-port': port,
  host: text,
  'max-bytes': bytes,
  save: text,
  url: address,
  token,
  editor,
  by,
  kind,
  against: text,
  budget: text,
  markdown: true,
  watch: true,
  stay: true,
  json: true,
  attributes: true,
  help: true,
  version: true
}

// Options of Node that are passed on in addition to those in process.allowedNodeEnvironmentFlags.
const NODE_FLAGS = /^--(?:env-file(?:-if-exists)?|watch-path|watch-preserve-output|inspect(?:-\w+)*|import|require|experimental-[\w-]+)(?:=|$)/
// Options of Node whose value may be a separate argument.
const TAKES_NEXT = /^(?:--(?:env-file(?:-if-exists)?|watch-path|import|require|loader|experimental-loader|conditions)|-[rC])$/
const UNITS = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 }
const MIN_BYTES = 2 ** 20
// Editors that open editor://file/<path>:<line>. The page knows them, too.
const EDITORS = ['vscode', 'vscode-insiders', 'vscodium', 'cursor', 'windsurf', 'zed', 'none']

class UsageError extends Error {
  expected = true
}

/**
 * @returns {{ command: string, options: object, nodeOptions: string[], program: string[] | null, operand?: string }}
 *   `program`: the app or command and its arguments
 * @throws UsageError
 */
function parseArguments (args) {
  const parsed = { command: 'serve', operand: undefined, options: {}, nodeOptions: [], program: null }
  let at = 0
  let isNamed = false
  for (; at < args.length; at++) {
    const argument = args[at]
    if (argument === '--') {
      at++
      break
    }
    if (argument === '-h') parsed.options.help = true
    else if (argument === '-v') parsed.options.version = true
    else if (argument.startsWith('-') && argument !== '-') at += takeOption(parsed, argument, args[at + 1])
    else if (!isNamed && COMMANDS.has(argument)) {
      parsed.command = argument
      isNamed = true
    } else if (takesOperand(parsed)) parsed.operand = argument
    else break
  }
  return finish(parsed, args.slice(at))
}

function takesOperand ({ command, operand }) {
  return ['trace', 'metrics', 'services', 'import', 'export', 'check'].includes(command) && operand === undefined
}

/** @returns {number} how many more arguments it took */
function takeOption (parsed, argument, next) {
  const [, name, value] = /^--?([^=]*)(?:=([^]*))?$/.exec(argument)
  const inline = argument.includes('=')
  const kind = Object.hasOwn(OPTIONS, name) && argument.startsWith('--') ? OPTIONS[name] : undefined
  if (kind === undefined) {
    if (!isNodeOption(argument)) throw new UsageError(`unknown option ${argument.split('=')[0]}${nearest(name)} See --help`)
    parsed.nodeOptions.push(argument)
    if (next === undefined || !TAKES_NEXT.test(argument)) return 0
    parsed.nodeOptions.push(next)
    return 1
  }
  if (kind === true) {
    if (inline) throw new UsageError(`--${name} takes no value`)
    parsed.options[name] = true
    return 0
  }
  if (!inline && (next === undefined || (next.startsWith('-') && next !== '-'))) throw new UsageError(`--${name} needs a value`)
  parsed.options[name] = kind(inline ? value : next, `--${name}`)
  return inline ? 0 : 1
}

function isNodeOption (argument) {
  return NODE_FLAGS.test(argument) || process.allowedNodeEnvironmentFlags.has(argument.split('=')[0])
}

function nearest (name) {
  const { nearestName } = require('../../lib/config/checks')
  const near = nearestName(name, Object.keys(OPTIONS))
  return near === undefined ? '.' : `. Did you mean --${near}?`
}

function finish (parsed, rest) {
  if (parsed.options.help === true) return { ...parsed, command: 'help' }
  if (parsed.options.version === true) return { ...parsed, command: 'version' }
  const { command, operand } = parsed
  if (command === 'serve' || command === 'tail') {
    if (rest.length > 0) parsed.program = programOf(rest, parsed.nodeOptions)
    else if (parsed.nodeOptions.length > 0) throw new UsageError(`${parsed.nodeOptions[0]} needs an app`)
    else if (parsed.options.watch) throw new UsageError('--watch needs an app')
    if (command === 'tail' && parsed.program !== null && parsed.options.url !== undefined) throw new UsageError('tail takes an app or --url, not both')
  } else if (rest.length > 0) throw new UsageError(`${command} does not take "${rest[0]}"`)
  if (command === 'trace' && operand === undefined) throw new UsageError('trace needs an id, last, slowest or failed')
  if (command === 'import' && operand === undefined) throw new UsageError('import needs a file, or - for standard input')
  if (command === 'check' && operand === undefined) throw new UsageError('check needs a file written by --save')
  if (command === 'check' && parsed.options.against === undefined && parsed.options.budget === undefined) throw new UsageError('check needs --against <file>, --budget <file> or both')
  return parsed
}

/** Returns the app's file or a command, with its arguments. `node app.js` counts as the file app.js. */
function programOf (rest, nodeOptions) {
  if (rest[0] === 'node' && rest.length > 1) {
    const file = rest.findIndex((argument, i) => i > 0 && !argument.startsWith('-') && !TAKES_NEXT.test(rest[i - 1]))
    if (file !== -1) {
      nodeOptions.push(...rest.slice(1, file))
      rest = rest.slice(file)
    }
  }
  const [name] = rest
  if (!isFile(name) && !isCommand(name)) {
    throw new UsageError(`there is no file, program or command "${name}"${nearestCommand(name)} See --help`)
  }
  return rest
}

function nearestCommand (name) {
  const { nearestName } = require('../../lib/config/checks')
  const near = nearestName(name, [...COMMANDS])
  return near === undefined ? '.' : `. Did you mean ${near}?`
}

/** Finds a file as Node does: with or without its extension, or a folder. */
function isFile (name) {
  return existsSync(name) || ['.js', '.mjs', '.cjs'].some((extension) => existsSync(name + extension))
}

function isCommand (name) {
  if (/[/\\]/.test(name)) return false
  const extensions = process.platform === 'win32' ? ['.cmd', '.exe', '.bat'] : ['']
  return (process.env.PATH ?? '').split(delimiter).some((folder) => extensions.some((extension) => existsSync(join(folder, name + extension))))
}

function port (value, name) {
  if (!/^\d{1,5}$/.test(value) || Number(value) > 65_535) throw new UsageError(`${name} must be a number from 0 to 65535, not "${value}"`)
  return Number(value)
}

function bytes (value, name) {
  const match = /^(\d+(?:\.\d+)?)([kmg]?)i?b?$/i.exec(value)
  const count = match === null ? 0 : Math.floor(Number(match[1]) * UNITS[match[2].toLowerCase()])
  if (count < MIN_BYTES || !Number.isSafeInteger(count)) throw new UsageError(`${name} must be a size of at least 1mb, such as 64mb, not "${value}"`)
  return count
}

function address (value, name) {
  let url
  try {
    url = new URL(value)
  } catch {}
  if (url?.protocol !== 'http:') throw new UsageError(`${name} must be an address such as http://127.0.0.1:4318, not "${value}"`)
  return url
}

function token (value, name) {
  if (!/^[\w-]{16,128}$/.test(value)) throw new UsageError(`${name} must be 16 to 128 letters, digits, _ or -`)
  return value
}

function editor (value, name) {
  return oneOf(value, name, EDITORS)
}

function by (value, name) {
  if (value !== 'name' && value !== 'service') throw new UsageError(`${name} must be name or service, not "${value}"`)
  return value
}

function kind (value, name) {
  return oneOf(value, name, require('../otlp/names').METRIC_KINDS)
}

function oneOf (value, name, values) {
  if (!values.includes(value)) throw new UsageError(`${name} must be one of ${values.join(', ')}, not "${value}"`)
  return value
}

function text (value, name) {
  if (value === '') throw new UsageError(`${name} needs a value`)
  return value
}

module.exports = { parseArguments, isFile, UsageError, HELP }
