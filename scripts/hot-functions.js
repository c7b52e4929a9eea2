'use strict'

// npm run docs:figures: the comments `// HOT …` of lib/ → the table of hot functions in bench/RESULTS.md.
// test/house/docs.test.js compares.

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { requiredFiles } = require('./required-files')

const ROOT = join(__dirname, '..')
const PAGE = join(ROOT, 'bench', 'RESULTS.md')
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*)/
const START = '<!-- hot:start -->'
const END = '<!-- hot:end -->'

module.exports = { hotFunctions, hotFiles, withTable }

if (require.main === module) writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8')))

/** → [{ file, name, often, budget, proof }], by file */
function hotFunctions () {
  return [...requiredFiles()].filter((file) => file.endsWith('.js')).sort()
    .flatMap((file) => inFile(file, readFileSync(join(ROOT, file), 'utf8').split('\n')))
}

/** The files that run per request: those with such a comment. test/house/code.test.js finds the ones that lack it. */
function hotFiles () {
  return [...new Set(hotFunctions().map(({ file }) => file))]
}

function withTable (page) {
  // Those that say how often they run; the others are called by these.
  const rows = hotFunctions().filter(({ often }) => often !== '').map(({ file, name, often, budget, proof }) => `| \`${name}\` | \`${file}\` | ${often} | ${budget} | ${proof} |`)
  const table = ['| function | file | runs | may allocate | measured by |', '|---|---|---|---|---|', ...rows].join('\n')
  return page.replace(new RegExp(`${START}[^]*${END}`), () => `${START}\n${table}\n${END}`)
}

function inFile (file, lines) {
  const found = []
  let owner = ''
  for (let i = 0; i < lines.length; i++) {
    owner = /^class (\w+)/.exec(lines[i])?.[1] ?? owner
    if (!COMMENT.test(lines[i])) continue
    const from = i
    while (i < lines.length && COMMENT.test(lines[i])) i++
    const text = lines.slice(from, i).map((line) => line.replace(/^\s*(?:\/\/|\/\*\*|\*\/?)\s?|\s*\*\/\s*$/g, '')).join(' ').trim()
    if (/\bHOT\b/.test(text)) found.push({ file, name: nameIn(lines[i]).replace('constructor', `new ${owner}`), ...saidIn(text) })
  }
  return found
}

// 'HOT, once per request. Budget: 1 object. Proof: bench/micro/x.bench.js'
function saidIn (text) {
  const [, often = ''] = /\bHOT((?:,| where)[^.]*)/.exec(text) ?? []
  const [, budget = ''] = /Budget: ([^.]*)/.exec(text) ?? []
  const [, proof = ''] = /Proof: (bench\/[\w./-]*\w)/.exec(text) ?? []
  return { often: often.replace(/^, ?/, '').trim(), budget, proof: proof && `\`${proof}\`` }
}

function nameIn (line) {
  const [, name] = /function ([\w$]+)|^\s*(?:async |static |get |set )*(#?[\w$]+) ?\(|^\s*(?:const |let )?(#?[\w$.]+) ?[=:]/.exec(line)?.filter((part, index) => index === 0 || part !== undefined) ?? []
  if (name === undefined) throw new Error(`HOT, and no function follows: ${line}`)
  return name
}
