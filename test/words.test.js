'use strict'

// Words that readers have stumbled over, in what they read: the README, the published pages, the types, and what light-trace says.

const { readFileSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')

const ROOT = join(__dirname, '..')
const INSTEAD = {
  told: 'logged, given, asked',
  whoever: 'the code that, the process that',
  'ways? out': 'exporter',
  'does without': 'is missing',
  'loses the way': 'loses the context',
  'takes with it': 'is lost',
  'in company': 'beside other tracers'
}

const FOR_DEVELOPERS = new Set(['architecture.md', 'decisions.md', 'fault-matrix.md', 'overhead.md', 'releasing.md', 'upstream.md'])

test('what users read has none of the words that they have stumbled over', async (t) => {
  const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md') && !FOR_DEVELOPERS.has(name))
  t.ok(pages.length > 15)
  const types = ['index.d.ts', 'register.d.ts', join('lib', 'testing.d.ts')]
  const sources = readdirSync(join(ROOT, 'lib'), { recursive: true }).filter((name) => name.endsWith('.js')).map((name) => join('lib', name))
  for (const file of ['README.md', 'SECURITY.md', ...pages.map((name) => join('docs', name)), ...types, ...sources]) {
    const text = withoutComments(file, readFileSync(join(ROOT, file), 'utf8'))
    for (const [word, better] of Object.entries(INSTEAD)) {
      const [found] = new RegExp(`.*\\b${word}\\b.*`, 'i').exec(text) ?? []
      t.equal(found, undefined, `${file}: rather ${better}`)
    }
  }
})

// Of sources only the messages.
function withoutComments (file, text) {
  return file.endsWith('.js') ? text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '').replace(/ \/\/ .*$/gm, '') : text
}
