'use strict'

const neostandard = require('neostandard')

// What the viewer's page uses of a browser, and no more.
const BROWSER = ['window', 'document', 'location', 'history', 'navigator', 'localStorage', 'fetch', 'EventSource', 'URL', 'URLSearchParams', 'Blob', 'CSS',
  'matchMedia', 'getComputedStyle', 'requestAnimationFrame', 'ResizeObserver', 'setTimeout', 'clearTimeout']

module.exports = [
  ...neostandard({ ignores: ['test/senders/.venv/**', '.cache/**', '.ecosystem/**', '.matrix/**', '.tap/**', 'bench/node_modules/**', 'test/fixtures/**/node_modules/**'] }),
  { files: ['viewer/page/**'], languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])) } }
]
