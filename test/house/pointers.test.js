'use strict'

// The repository stands alone: what its files point to is in it.

const { readFileSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')

const ROOT = join(__dirname, '..', '..')
const NOT_OURS = /(?:^|\/)(?:node_modules|\.\w[^/]*|results)(?:\/|$)/
// Not through what other tests write and delete meanwhile.
const entries = readdirSync(ROOT, { withFileTypes: true }).filter(({ name }) => !NOT_OURS.test(name))
const files = entries.flatMap((entry) => entry.isDirectory() ? readdirSync(join(ROOT, entry.name), { recursive: true }).map((file) => `${entry.name}/${file.replaceAll('\\', '/')}`) : [entry.name])
  .filter((file) => /\.(?:m?js|m?ts|md)$/.test(file) && !NOT_OURS.test(file) && file !== 'test/house/pointers.test.js')
const decisions = new Set(readFileSync(join(ROOT, 'docs', 'decisions.md'), 'utf8').match(/^## D\d+/gm).map((heading) => heading.slice(3)))

test('no file points to a text that is not in the repository', async (t) => {
  t.ok(files.length > 200)
  for (const file of files) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    t.notMatch(text, /\b(?:design|style|channels|peers|semconv-http|env-vars|otel-js)\.md\b|\bfacts\/|\/work\/|\bissue \d+\b/, file)
    for (const [, page] of text.matchAll(/\bdocs\/([\w-]+\.md)\b/g)) t.ok(files.includes(`docs/${page}`), `${file}: docs/${page}`)
  }
})

test('a comment that names a decision names one that there is', async (t) => {
  t.ok(decisions.size >= 20)
  for (const file of files.filter((name) => /^(?:lib|test|bench|scripts)\//.test(name))) {
    const comments = readFileSync(join(ROOT, file), 'utf8').match(/\/\/.*|^ *\*.*/gm) ?? []
    for (const comment of comments) {
      for (const [name] of comment.matchAll(/\bD\d+\b/g)) t.ok(decisions.has(name), `${file}: ${name}`)
    }
  }
})
