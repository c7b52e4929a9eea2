'use strict'

// Which code a published row is of: a commit, and a hash of the files that run per request (hotFiles of scripts/hot-functions.js).
// The hash leaves out comments and blank lines. A commit that changes no hot file leaves every row as true as it was; one that does
// makes the rows older than their code, though the commit that they name is still there.

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')
const { execFileSync } = require('node:child_process')
const { hotFiles } = require('../../scripts/hot-functions')

const ROOT = path.join(__dirname, '../..')
const HASH_DIGITS = 12

module.exports = { hotHash, hashOf, isOfToday, codeOf, rowsIn, unknownRows }

let hash
/** Of the hot files of this checkout. */
function hotHash () {
  hash ??= hashOf(hotFiles().map((file) => [file, fs.readFileSync(path.join(ROOT, file), 'utf8')]))
  return hash
}

/** @param {[string, string][]} files name and text */
function hashOf (files) {
  const sum = createHash('sha256')
  for (const [file, text] of files) sum.update(`${file}\n${withoutComments(text)}\n`)
  return sum.digest('hex').slice(0, HASH_DIGITS)
}

function withoutComments (text) {
  return text.split('\n').map((line) => line.replace(/^\s*(?:\/\/|\/\*\*|\*).*$|\s\/\/ .*$/, '')).filter((line) => line.trim() !== '').join('\n')
}

// Where rows of one file were measured by several runs, each has its own commit; else the file has it.
const OWN = {
  instructions: ({ nodes }) => Object.entries(nodes).flatMap(([major, { rows }]) => rows.map((row) => ({ ...row, name: `${row.name}, Node ${major}` }))),
  growth: ({ tables }) => tables,
  seeds: ({ tables }) => tables
}

/**
 * What of a results file was measured together. → [{ name, commit, hot }]
 * @param {string} kind the file's name under bench/results
 */
function rowsIn (kind, result) {
  return OWN[kind]?.(result) ?? [{ ...result, name: kind }]
}

/**
 * Those whose commit is in no history that a clone has.
 * @param {{ commit: string }[]} rows
 * @returns {object[] | null} null where this cannot be told: in a shallow clone, and where there is no git
 */
function unknownRows (rows) {
  const known = history()
  return known === null ? null : rows.filter(({ commit }) => !known.has(commit))
}

let commits
/** The commits of HEAD, or null. */
function history () {
  commits ??= readHistory()
  return commits
}

function readHistory () {
  try {
    return git('rev-parse', '--is-shallow-repository') === 'true' ? null : new Set(git('rev-list', 'HEAD').split('\n'))
  } catch {
    return null
  }
}

/**
 * Whether the hot files are today as they were when the row was counted. Of a row from before rows had a hash its commit says it.
 * hot null: a row in which no hot file runs, Fastify's own or another tracer's.
 */
function isOfToday ({ commit, hot }) {
  if (hot === null) return true
  return hot === undefined ? changesSince(commit) === 0 : hot === hotHash()
}

/**
 * The end of a caption: of which commits the rows are, and whether hot files have changed since.
 * @param {{ commit: string, hot?: string }[]} rows
 * @param {string} how they came from several commits
 */
function codeOf (rows, how = 'row by row') {
  const all = [...new Set(rows.map(({ commit }) => commit))]
  const names = all.map((commit) => commit?.slice(0, 7)).join(', ')
  const older = [...new Set(rows.filter((row) => !isOfToday(row)).map(({ commit }) => commit))]
  if (all.length === 1) return older.length === 0 ? `commit ${names}` : `counted at ${names}, ${since(older)}`
  return `counted ${how} at commits ${names}${older.length === 0 ? '' : `, the oldest ${since(older)}`}`
}

function since (older) {
  const counts = older.map(changesSince)
  if (counts.includes(undefined)) return 'before later changes of hot files'
  const most = Math.max(...counts)
  if (most === 0) return 'with changes of hot files that no commit has'
  return most === 1 ? 'before 1 commit that changed hot files' : `before ${most} commits that changed hot files`
}

const changes = new Map() // by commit
/** How many commits since have changed hot files. What is not committed yet counts as one, which it will be. */
function changesSince (commit) {
  if (!history()?.has(commit)) return undefined
  if (!changes.has(commit)) {
    const files = hotFiles()
    const committed = Number(git('rev-list', '--count', `${commit}..HEAD`, '--', ...files))
    changes.set(commit, committed + (git('status', '--porcelain', '--', ...files) === '' ? 0 : 1))
  }
  return changes.get(commit)
}

function git (...args) {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 26 }).trim()
}
