'use strict'

// Looks for what keeps people from using a page.

const { readFileSync } = require('node:fs')

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')

module.exports = { problemsOf }

// The browser's debugger runs the script, so the page's content security policy does not stop it.
async function problemsOf (page) {
  await page.evaluate(AXE)
  const violations = await page.evaluate(violationsIn)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join(' | ')}`)
}

// In the browser. axe looks at a page in several turns. If the page drew something anew in between, what was found may be of elements that
// are gone, so axe looks again.
async function violationsIn () {
  let changes = 0
  const observer = new window.MutationObserver(() => { changes++ })
  observer.observe(document.body, { subtree: true, childList: true })
  for (;;) {
    const before = changes
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] })
    if (violations.length > 0 && changes > before) continue
    observer.disconnect()
    return violations
  }
}
