'use strict'

// npm run docs:tables: writes the tables of options and variables in docs/*.md, and the options in index.d.ts. Sources are
// lib/config/table.js, which the program reads too, and the sentences of options-text.js. test/house/options.test.js checks the result.

module.exports = { files, withOptions, namesOfVariables, undescribed }

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { replaceBetween, table } = require('../bench/report/markdown')
const { checkOf, liveRows } = require('../lib/config/rows')
const { LOG_RECORDS, OPTIONS, OTHER_LIMITS, PROMETHEUS, ROUTE, VARIABLES } = require('../lib/config/table')
const text = require('./options-text')

const ROOT = join(__dirname, '..')
const TYPES_FILE = 'index.d.ts'
const LINE_MAX = 140

// The tables of each page, between `<!-- options:NAME:start -->` and `:end`. Each lists the members of these groups.
const PAGES = {
  'docs/options.md': {
    all: [''],
    exporter: ['exporter'],
    sampling: ['sampler', 'keep'],
    recorder: ['keep.recorder'],
    slow: ['slow', 'slow.blockedLoop'],
    headers: ['headers'],
    spans: ['spans', 'limits'],
    metrics: ['metrics'],
    outbound: ['outbound'],
    buffer: ['buffer'],
    route: ['config.trace'],
    live: []
  },
  'docs/logs.md': { logs: ['logs'] },
  'docs/environment.md': { variables: [] }
}

// The type of a check is that of the first sample it accepts.
const SAMPLES = [[true, 'boolean'], [1000, 'number'], ['/', 'string']]

/** The files that this script writes, relative to the root. */
function files () { return [...Object.keys(PAGES), TYPES_FILE] }

/** The content that a file should have. */
function withOptions (file, content) { return file === TYPES_FILE ? typesWith(content) : pageWith(file, content) }

// ---- rows

/** Every option row by path, including those of routes. */
function optionRows (rows = { ...OPTIONS, 'config.trace': { members: ROUTE } }, prefix = '') {
  return Object.entries(rows).flatMap(([name, row]) => {
    const isRoute = prefix === 'config.trace.' // its groups are the same as those of the options
    const members = isRoute ? [] : optionRows(row.members ?? {}, `${prefix}${name}.`)
    return name === 'config.trace' ? members : [[prefix + name, row], ...members]
  })
}

const BY_PATH = new Map([
  ...optionRows(),
  ...optionRows(VARIABLES),
  ...optionRows(OTHER_LIMITS, 'limits.'),
  ...optionRows(PROMETHEUS, 'prometheus.'),
  ...optionRows(LOG_RECORDS, 'logRecords.')
])

/** Paths of rows without a sentence, and of sentences without a row. */
function undescribed () {
  const options = optionRows().map(([path]) => path)
  const described = Object.keys(text.OPTIONS)
  const named = text.VARIABLES.flatMap(({ rows = [] }) => rows)
  const withVariables = [...BY_PATH].filter(([path, { variables }]) => variables !== undefined && !path.startsWith('config.trace.')).map(([path]) => path)
  const isMissing = (paths, among) => paths.filter((path) => !among.includes(path))
  return [...isMissing(options, described), ...isMissing(described, options), ...isMissing(withVariables, named), ...isMissing(named, withVariables)]
}

/** Every variable in docs/environment.md. */
function namesOfVariables () {
  return text.VARIABLES.flatMap(namesIn)
}

function namesIn ({ rows = [], names = [] }) {
  return [...rows.flatMap((path) => BY_PATH.get(path).variables), ...names]
}

// ---- pages

function pageWith (file, page) {
  for (const [name, groups] of Object.entries(PAGES[file])) page = replaceBetween(page, `options:${name}`, tableOf(name, groups))
  return page
}

function tableOf (name, groups) {
  if (name === 'live') return livePaths(liveRows(OPTIONS)).map((path) => `- \`${path}\``).join('\n')
  if (name === 'variables') return table([['variable', ({ names }) => quoted(names)], ['default', (row) => row.default], ['what it does', (row) => row.text]], text.VARIABLES.map(variableRow))
  const rows = groups.flatMap((group) => membersOf(group))
  const columns = [
    [name === 'all' ? 'option' : 'member', ([path]) => `\`${path}\``],
    ['default', ([path, row]) => defaultCell(path, row)],
    ['what it does', ([path]) => text.OPTIONS[path].text]
  ]
  return table(name === 'route' ? [columns[0], columns[2]] : columns, rows)
}

function livePaths (rows, prefix = '') {
  return Object.entries(rows).flatMap(([name, { live, members }]) => live ? [prefix + name] : livePaths(members, `${prefix}${name}.`))
}

function membersOf (group) {
  const depth = group === '' ? 1 : group.split('.').length + 1
  const prefix = group === '' ? '' : `${group}.`
  return optionRows().filter(([path]) => path.startsWith(prefix) && (path.split('.').length === depth))
}

function variableRow (given) {
  const defaults = (given.rows ?? []).map((path) => BY_PATH.get(path).default).filter((value) => value !== undefined)
  const shown = defaults.map((value) => `\`${value}\``).join(', ')
  return { names: namesIn(given), default: given.default ?? shown, text: given.text }
}

function quoted (names) {
  return names.map((name) => `\`${name}\``).join(', ')
}

function defaultCell (path, row) {
  if (text.OPTIONS[path].default !== undefined) return text.OPTIONS[path].default
  const literal = literalOf(row)
  const names = (row.variables ?? []).filter((name) => !name.includes('_OTLP_TRACES_')) // docs/environment.md lists these too
  return names.length === 0 && literal === null ? 'none' : quoted([...names, literal].filter((item) => item !== null))
}

/** A default as code; null if it has none. */
function literalOf (row) {
  const { default: value = null, members, check, whenFalse } = row
  if (value === null && whenFalse === false) return 'false'
  if (members !== undefined && check === undefined && typeof value === 'object' && value !== null) return literalOfMembers(members)
  if (value === null || (typeof value === 'object' && !Array.isArray(value))) return null
  return Array.isArray(value) ? `[${value.map((item) => `'${item}'`).join(', ')}]` : typeof value === 'string' ? `'${value}'` : `${value}`
}

function literalOfMembers (members) {
  const shown = Object.entries(members).map(([name, row]) => [name, literalOf(row)]).filter(([, literal]) => literal !== null)
  return `{ ${shown.map(([name, literal]) => `${name}: ${literal}`).join(', ')} }`
}

// ---- index.d.ts

/** Replaces the text between the lines `// options:start` and `// options:end`. */
function typesWith (file) {
  const [before, rest] = file.split(/(?<=\/\/ options:start.*\n)/)
  const [, after] = rest.split(/(?= {2}\/\/ options:end)/)
  return `${before}${Object.keys(text.TYPES).map(typeOf).join('\n')}${after}`
}

function typeOf (group) {
  const { name, text: about, isAlias = false } = text.TYPES[group]
  const head = isAlias ? `export type ${name ?? typeNameOf(group)} = {` : `export interface ${name ?? typeNameOf(group)} {`
  const members = membersOf(group).flatMap(([path, row]) => [
    ...comment(docOf(path, row), '    '),
    `    ${path.slice(path.lastIndexOf('.') + 1)}?: ${typeTextOf(path, row)} | undefined`
  ])
  const hooks = group === 'spans' ? ['', `  export type LifecycleHook =\n    ${unionOf(OPTIONS.spans.members.hooks.check.item.values)}`] : []
  return [...comment([about].flat(), '  '), `  ${head}`, ...members, '  }', ...hooks, ''].join('\n')
}

function typeNameOf (group) {
  const name = group.slice(group.lastIndexOf('.') + 1)
  return `${name[0].toUpperCase()}${name.slice(1)}Options`
}

function docOf (path, row) {
  const { text: sentence, more } = text.OPTIONS[path]
  const shown = defaultCell(path, row).replaceAll('`', '')
  return [[withoutLinks(sentence), more, shown !== 'none' && `@default ${shown}`].filter(Boolean).join(' ')]
}

/** Replaces a link by its text and the page that it leads to. */
function withoutLinks (sentence) {
  return sentence.replace(/\[([^\]]+)\]\(([\w.-]*)(?:#[\w-]+)?\)/g, (_, title, page) => page === '' || title.includes('.md') ? title.replace(/^(\w+\.md)$/, 'docs/$1') : `${title} (docs/${page})`)
}

function typeTextOf (path, row) {
  const { type } = text.OPTIONS[path]
  if (type !== undefined) return type
  if (row.members !== undefined && row.check === undefined) return `${text.TYPES[path].name ?? typeNameOf(path)}${row.whenTrue === undefined ? '' : ' | boolean'}`
  if (row.check.values !== undefined) return unionOf(row.check.values)
  const [, found] = SAMPLES.find(([sample]) => takes(checkOf(row), sample)) ?? []
  if (found === undefined) throw new Error(`options-text.js needs the type of ${path}`)
  return found
}

function takes (check, sample) {
  try {
    check('', sample)
    return true
  } catch {
    return false
  }
}

function unionOf (values) {
  return values.map((value) => typeof value === 'string' ? `'${value}'` : value).join(' | ')
}

/** A docstring, on one line if it fits. */
function comment (lines, indent) {
  const [line] = lines
  if (lines.length === 1 && line.length + indent.length + 7 <= LINE_MAX) return [`${indent}/** ${line} */`]
  return [`${indent}/**`, ...lines.flatMap((line) => lines.length === 1 ? folded(line, LINE_MAX - indent.length - 3) : [line]).map((line) => `${indent} * ${line}`), `${indent} */`]
}

function folded (line, length) {
  const lines = []
  for (const word of line.split(' ')) {
    if (lines.length > 0 && `${lines.at(-1)} ${word}`.length <= length && !(word === '@default')) lines.push(`${lines.pop()} ${word}`)
    else lines.push(word)
  }
  return lines
}

if (require.main === module) {
  for (const file of files()) {
    const path = join(ROOT, file)
    writeFileSync(path, withOptions(file, readFileSync(path, 'utf8')))
  }
}
