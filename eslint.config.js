'use strict'

// Three ways to ask, told apart by the npm script:
//   npm run lint         of npm test: what can be wrong. With its cache, what has not changed is not read again
//   npm run lint:layout  of CI: spaces, commas and indents, half of the work; `-- --fix` puts them right
//   npx eslint, editors  both

const neostandard = require('neostandard')
const { default: regexp } = require('eslint-plugin-regexp')

const { npm_lifecycle_event: SCRIPT } = process.env
const IS_LAYOUT = /^neostandard\/style/

// What the viewer's page uses of a browser, and no more.
const BROWSER = ['window', 'document', 'location', 'history', 'navigator', 'localStorage', 'fetch', 'EventSource', 'URL', 'URLSearchParams', 'Blob', 'CSS',
  'matchMedia', 'getComputedStyle', 'requestAnimationFrame', 'ResizeObserver', 'setTimeout', 'clearTimeout']

const configs = [
  ...neostandard({
    ignores: ['test/senders/.venv/**', '.cache/**', 'site/.cache/**', '.ecosystem/**', '.matrix/**', '.tap/**', 'bench/node_modules/**', 'test/fixtures/**/node_modules/**'],
    noJsx: true,
    noStyle: SCRIPT === 'lint'
  }),
  { // callers write what these read: no expression may take more than linear time
    files: ['lib/**/*.js', 'viewer/**/*.js'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': ['error', { report: 'certain' }], 'regexp/no-super-linear-move': 'error' }
  },
  { files: ['viewer/page/**'], languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])) } }
]

module.exports = SCRIPT === 'lint:layout' ? configs.map((config) => 'rules' in config && !IS_LAYOUT.test(config.name) ? { ...config, rules: {} } : config) : configs
