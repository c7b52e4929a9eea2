'use strict'

// node scripts/hot-functions.js: lists what runs for every request, span or call, and what it may allocate, from the `// HOT …` comments
// of lib/.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { requiredFiles } = require('./required-files')

const ROOT = join(__dirname, '..')
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*)/

module.exports = { hotFunctions, hotFiles }

// Lists only functions that state how often they run. The others are called by these.
if (require.main === module) console.table(hotFunctions().filter(({ often }) => often !== ''), ['name', 'file', 'often', 'budget', 'proof'])

/** → [{ file, name, often, budget, proof }], sorted by file */
function hotFunctions () {
  return [...requiredFiles()].filter((file) => file.endsWith('.js')).sort()
    .flatMap((file) => inFile(file, readFileSync(join(ROOT, file), 'utf8').split('\n')))
}

/** The files that run per request: those with a HOT comment. test/house/code.test.js finds files that lack one. */
function hotFiles () {
  return [...new Set(hotFunctions().map(({ file }) => file))]
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
  return { often: often.replace(/^, ?/, '').trim(), budget, proof }
}

function nameIn (line) {
  const [, name] = /function ([\w$]+)|^\s*(?:async |static |get |set )*(#?[\w$]+) ?\(|^\s*(?:const |let )?(#?[\w$.]+) ?[=:]/.exec(line)?.filter((part, index) => index === 0 || part !== undefined) ?? []
  if (name === undefined) throw new Error(`no function follows HOT: ${line}`)
  return name
}
