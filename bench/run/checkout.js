'use strict'

// Checks out another commit of this repository: a git worktree in .cache that uses this checkout's node_modules. It is removed when the
// process ends.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const root = path.join(__dirname, '../..')

module.exports = folderOf

// what: a folder, or anything that git can resolve to a commit
function folderOf (what) {
  return fs.existsSync(path.join(what, 'index.js')) ? path.resolve(what) : layOut(what)
}

function layOut (ref) {
  const sha = git('rev-parse', '--verify', `${ref}^{commit}`)
  const folder = path.join(root, '.cache', `bench-${sha.slice(0, 10)}-${process.pid}`)
  git('worktree', 'add', '--detach', '--quiet', folder, sha)
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'junction')
  process.once('exit', () => {
    fs.rmSync(path.join(folder, 'node_modules'))
    git('worktree', 'remove', '--force', folder)
  })
  return folder
}

function git (...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
