'use strict'

// Looks for what keeps people from using a page.

const { readFileSync } = require('node:fs')

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

module.exports = { problemsOf }

// The browser's debugger runs the script, so the page's content security policy does not stop it.
async function problemsOf (page) {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join(' | ')}`)
}
