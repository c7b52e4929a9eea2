'use strict'

// There are three ways to run ESLint, told apart by the npm script:
//   npm run lint         part of npm test: finds mistakes. Its cache skips unchanged files
//   npm run lint:layout  part of CI: spaces, commas and indentation, half of the work; `-- --fix` corrects them
//   npx eslint, editors  both

const neostandard = require('neostandard')
const { default: regexp } = require('eslint-plugin-regexp')

const { npm_lifecycle_event: SCRIPT } = process.env
const IS_LAYOUT = /^neostandard\/style/

// The browser globals that the viewer's page may use.
const BROWSER = ['window', 'document', 'location', 'history', 'navigator', 'localStorage', 'fetch', 'EventSource', 'URL', 'URLSearchParams', 'Blob', 'CSS',
  'matchMedia', 'getComputedStyle', 'requestAnimationFrame', 'ResizeObserver', 'MutationObserver', 'IntersectionObserver', 'setTimeout', 'clearTimeout']

const configs = [
  ...neostandard({
    ignores: ['test/senders/.venv/**', '.cache/**', 'site/.cache/**', '.ecosystem/**', '.matrix/**', '.tap/**', 'bench/node_modules/**', 'test/fixtures/**/node_modules/**'],
    noJsx: true,
    noStyle: SCRIPT === 'lint'
  }),
  { // clients control the input of these files: no regular expression may take more than linear time
    files: ['lib/**/*.js', 'viewer/**/*.js'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': ['error', { report: 'certain' }], 'regexp/no-super-linear-move': 'error' }
  },
  { files: ['viewer/page/**'], languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])) } }
]

module.exports = SCRIPT === 'lint:layout' ? configs.map((config) => 'rules' in config && !IS_LAYOUT.test(config.name) ? { ...config, rules: {} } : config) : configs
