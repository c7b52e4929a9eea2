'use strict'

const neostandard = require('neostandard')
const { default: regexp } = require('eslint-plugin-regexp')

// What the viewer's page uses of a browser, and no more.
const BROWSER = ['window', 'document', 'location', 'history', 'navigator', 'localStorage', 'fetch', 'EventSource', 'URL', 'URLSearchParams', 'Blob', 'CSS',
  'matchMedia', 'getComputedStyle', 'requestAnimationFrame', 'ResizeObserver', 'setTimeout', 'clearTimeout']

module.exports = [
  ...neostandard({ ignores: ['test/senders/.venv/**', '.cache/**', 'site/.cache/**', '.ecosystem/**', '.matrix/**', '.tap/**', 'bench/node_modules/**', 'test/fixtures/**/node_modules/**'] }),
  { // callers write what these read: no expression may take more than linear time
    files: ['lib/**/*.js', 'viewer/**/*.js'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': ['error', { report: 'certain' }], 'regexp/no-super-linear-move': 'error' }
  },
  { files: ['viewer/page/**'], languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])) } }
]
