'use strict'

const { readFileSync } = require('node:fs')
const { join } = require('node:path')

/** Returns the code blocks of a language (`js`, `ts`, `sh`, …) under a heading of a docs page, so that tests run the code of the docs. */
function docsCode (page, heading, language) {
  const text = readFileSync(join(__dirname, '../../docs', page), 'utf8')
  const section = text.split(/^(?=#+ )/m).find((part) => part.split('\n')[0].replace(/^#+ /, '') === heading)
  if (section === undefined) throw new Error(`docs/${page} has no heading ${heading}`)
  return [...section.matchAll(new RegExp('^```' + language + '\\n([\\s\\S]*?)^```', 'gm'))].map(([, code]) => code)
}

module.exports = { docsCode }
