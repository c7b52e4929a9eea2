'use strict'

// The code that a published row measured: a commit, and a hash of the files that run per request (hotFiles of scripts/hot-functions.js).
// The hash ignores comments and blank lines. Rows stay valid across commits that change no hot file. A commit that changes one makes the
// rows outdated, even though the commit that they name still exists.

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')
const { execFileSync } = require('node:child_process')
const { hotFiles } = require('../../scripts/hot-functions')

const ROOT = path.join(__dirname, '../..')
const HASH_DIGITS = 12

module.exports = { hotHash, hashOf, isOfToday, codeOf, rowsIn, unknownRows }

let hash
/** The hash of this checkout's hot files. */
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

// If several runs measured the rows of a file, each row has its own commit. Otherwise the file has one.
const OWN = {
  instructions: ({ nodes }) => Object.entries(nodes).flatMap(([major, { rows }]) => rows.map((row) => ({ ...row, name: `${row.name}, Node ${major}` }))),
  growth: ({ tables }) => tables,
  seeds: ({ tables }) => tables
}

/**
 * The parts of a results file that were each measured in one run. → [{ name, commit, hot }]
 * @param {string} kind the file's name under bench/results
 */
function rowsIn (kind, result) {
  return OWN[kind]?.(result) ?? [{ ...result, name: kind }]
}

/**
 * The rows whose commit is not in the history.
 * @param {{ commit: string }[]} rows
 * @returns {object[] | null} null if this is unknown: in a shallow clone, or without git
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
 * Whether the hot files are the same as when the row was counted. Rows from before the hash existed are judged by their commit.
 * hot null: no hot file runs in this row, which is of Fastify itself or of another tracer.
 */
function isOfToday ({ commit, hot }) {
  if (hot === null) return true
  return hot === undefined ? changesSince(commit) === 0 : hot === hotHash()
}

/**
 * The end of a caption: the commits of the rows, and whether hot files have changed since.
 * @param {{ commit: string, hot?: string }[]} rows
 * @param {string} how describes rows of several commits: 'table by table'
 */
function codeOf (rows, how = 'row by row') {
  const all = [...new Set(rows.map(({ commit }) => commit))]
  const names = all.map((commit) => commit?.slice(0, 7)).join(', ')
  const older = [...new Set(rows.filter((row) => !isOfToday(row)).map(({ commit }) => commit))]
  if (all.length === 1) return older.length === 0 ? `commit ${names}` : `counted at ${names}; since then, ${since(older)}`
  return `counted ${how} at commits ${names}${older.length === 0 ? '' : `; since the oldest, ${since(older)}`}`
}

function since (older) {
  const counts = older.map(changesSince)
  if (counts.includes(undefined)) return 'files that run per request have changed'
  const most = Math.max(...counts)
  if (most === 0) return 'files that run per request have uncommitted changes'
  return most === 1 ? '1 commit changed files that run per request' : `${most} commits changed files that run per request`
}

const changes = new Map() // by commit
/** The number of commits since `commit` that changed hot files. Uncommitted changes count as one. */
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
