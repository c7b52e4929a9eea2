'use strict'

// All link targets of the site exist: pages, headings, pictures. VitePress itself checks pages, but not headings.

const { existsSync, readFileSync, readdirSync } = require('node:fs')
const { join, posix, sep } = require('node:path')
const { test } = require('tap')
const { listed, pageOf } = require('../../site/pages')

const SITE = process.env.LIGHT_TRACE_SITE
const files = readdirSync(SITE, { recursive: true }).map((file) => file.split(sep).join('/'))
const pages = new Map(files.filter((file) => file.endsWith('.html') && file !== '404.html').map((file) => [file, readFileSync(join(SITE, file), 'utf8')]))

test('every entry of llms.txt is a page', async (t) => {
  t.ok(pages.size > 40)
  for (const path of listed()) t.ok(pages.has(pageOf(path).replace(/\.md$/, '.html')), path)
})

test('every link leads to an existing page and heading', async (t) => {
  let followed = 0
  for (const [page, html] of pages) {
    for (const [, link] of html.matchAll(/<a\b[^>]*? href="([^"]*)"/g)) {
      if (/^(?:https?|mailto):/.test(link)) continue
      const { file, hash } = targetOf(page, link)
      t.ok(existsSync(join(SITE, file)), `${page} links to ${link}`)
      if (hash !== '' && pages.has(file)) t.ok(pages.get(file).includes(`id="${hash}"`), `${page} links to ${link}`)
      followed++
    }
  }
  t.ok(followed > 1000)
})

test('a page loads nothing from another host', async (t) => {
  for (const [page, html] of pages) {
    for (const [, attributes] of html.matchAll(/<(?:script|link|img|iframe|source)\b([^>]*)>/g)) {
      for (const [, link] of attributes.matchAll(/\b(?:src|href)="([^"]*)"/g)) {
        if (link.startsWith('data:')) continue
        t.notMatch(link, /^(?:[a-z]+:)?\/\//, page)
        t.ok(existsSync(join(SITE, targetOf(page, link).file)), `${page} loads ${link}`)
      }
    }
  }
})

test('llms.txt and its linked files are served as written', async (t) => {
  for (const path of ['llms.txt', ...listed().filter((path) => path.endsWith('.md')), 'skills/light-trace/SKILL.md']) {
    t.equal(readFileSync(join(SITE, path), 'utf8'), readFileSync(join(__dirname, '..', '..', path), 'utf8'), path)
  }
  const full = readFileSync(join(SITE, 'llms-full.txt'), 'utf8')
  t.ok(full.includes(readFileSync(join(__dirname, '../../docs/options.md'), 'utf8')))
})

test('the types of functions and their options are described', async (t) => {
  const page = pages.get('api/light-trace.html')
  for (const name of ['lighttrace', 'current', 'traceclient', 'run', 'flushafter', 'requesttrace', 'lighttraceoptions']) t.ok(page.includes(`id="${name}"`), name)
  t.ok(pages.get('api/testing.html').includes('id="createcollector"'))
  t.match(pages.get('api/register.html'), 'node --import light-trace/register app.js')
})

function targetOf (page, link) {
  const [path, hash = ''] = link.replaceAll('&amp;', '&').split('#')
  const file = path === '' ? page : posix.join(path.startsWith('/') ? '' : posix.dirname(page), path)
  return { file: decodeURIComponent(file.replace(/^\//, '')).replace(/^$|(?<=\/)$/, 'index.html'), hash: decodeURIComponent(hash) }
}
