'use strict'

// Copies the repository's pages to site/.cache/pages, where VitePress reads them. They keep their paths, so that links between them work.
// A folder or code file that a page links to becomes a page too. llms.txt lists the pages and their order. The site also serves llms.txt,
// and the pages as markdown.

const { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } = require('node:fs')
const { dirname, extname, join, posix } = require('node:path')

const ROOT = join(__dirname, '..')
const PAGES = join(__dirname, '.cache', 'pages')
const TYPES = { 'index.d.ts': 'light-trace', 'lib/features/testing/testing.d.ts': 'testing', 'register.d.ts': 'register' }
const LINKED_ONLY = ['CODE_OF_CONDUCT.md', 'bench/REQUESTS.md', 'bench/upstream/README.md']
const DECLARATIONS = join(__dirname, '.cache', 'types')
const PICTURE = /\.(?:png|svg)$/
const RELATIVE_LINK = /(\]\()((?![a-z]+:|#)[^)#\s]+)(#[^)\s]*)?\)/g
const CODE = /(^```.*?^```$|`[^`\n]*`)/gms

module.exports = { makePages, sections, pageOf, listed, PAGES }

/** The sections of llms.txt: { title, links: [{ title, path, about }] }. */
function sections () {
  return read('llms.txt').split(/^## /m).slice(1).map((section) => ({
    title: section.split('\n', 1)[0],
    links: [...section.matchAll(/^- \[(.+?)\]\((.+?)\): (.+)$/gm)].map(([, title, path, about]) => ({ title, path, about }))
  }))
}

/** All paths that llms.txt lists. */
function listed () {
  return sections().flatMap(({ links }) => links.map(({ path }) => path))
}

/** The path in the site of a file in the repository. */
function pageOf (path) {
  if (path in TYPES) return `api/${TYPES[path]}.md`
  if (path.endsWith('.md')) return path.replace(/README\.md$/, 'index.md')
  return statSync(join(ROOT, path)).isDirectory() ? `${path}/index.md` : `${path}.md`
}

function makePages () {
  rmSync(PAGES, { recursive: true, force: true })
  const made = new Set()
  const waiting = [...listed(), ...LINKED_ONLY]
  for (const path of waiting) {
    if (made.has(path) || path in TYPES) continue
    made.add(path)
    if (PICTURE.test(path)) cpSync(join(ROOT, path), join(PAGES, path))
    else write(pageOf(path), makePage(path, waiting))
  }
  const texts = [...made].filter((path) => path.endsWith('.md'))
  for (const path of [...texts, ...Object.keys(TYPES), 'llms.txt', 'skills/light-trace/SKILL.md']) write(join('public', path), read(path))
  write('public/llms-full.txt', sections().filter(({ title }) => title !== 'Optional').flatMap(({ links }) => links)
    .filter(({ path }) => extname(path) !== '').map(({ path }) => `<!-- ${path} -->\n\n${read(path)}`).join('\n'))
  for (const [path, name] of Object.entries(TYPES)) write(`${name}.d.ts`, asModule(read(path)), DECLARATIONS)
}

// TypeDoc documents `export =` of a function with a namespace as a module with a namespace `export=`. This rewrites it as the module that
// an import sees.
function asModule (types) {
  return types
    .replace(/^declare namespace lightTrace \{\n(.*?)^\}\n/ms, '$1')
    .replace(/^ {2}export const lightTrace.*\n.*as default \}\n/m, '')
    .replace(/^declare function lightTrace/m, '/** The plugin: `app.register(lightTrace, options)`. */\nexport function lightTrace')
    .replace(/^export = lightTrace\n/m, '')
    .replace(/\blightTrace\.(?=[A-Z])/g, '')
    .replace(/'\.\.?\/index'/g, "'./light-trace'")
    .replace(/^ \*\/\n(?=import ')/m, ' * @module\n$&')
}

function makePage (path, waiting) {
  if (path.endsWith('.md')) return linked(path, waiting)
  if (statSync(join(ROOT, path)).isDirectory()) return folderPage(path, waiting)
  return codePage(path)
}

/** Reads a page and makes its relative links lead to the site's version of their targets. A page name in code becomes a link. */
function linked (path, waiting) {
  const names = new Set(listed())
  return read(path).split(CODE).map((part, index, parts) => {
    const name = part.slice(1, -1)
    if (index % 2 === 1) return names.has(name) && !parts[index - 1].endsWith('[') ? `[${part}](/${pageOf(name)})` : part
    return part.replace(RELATIVE_LINK, (all, start, link, heading = '') => {
      const target = posix.join(posix.dirname(path), link).replace(/\/$/, '')
      waiting.push(target)
      return PICTURE.test(target) ? `${start}/${target})` : `${start}/${pageOf(target)}${heading})`
    })
  }).join('')
}

function folderPage (path, waiting) {
  const names = readdirSync(join(ROOT, path)).sort()
  waiting.push(...names.map((name) => `${path}/${name}`))
  return `# ${path}\n\n${names.map((name) => `- [${name}](/${pageOf(`${path}/${name}`)})`).join('\n')}\n`
}

function codePage (path) {
  return `# ${path}\n\n\`\`\`\`${extname(path).slice(1).replace(/^m(?=[jt]s)/, '')}\n${read(path)}\`\`\`\`\n`
}

function read (path) {
  return readFileSync(join(ROOT, path), 'utf8')
}

function write (name, text, folder = PAGES) {
  const file = join(folder, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
