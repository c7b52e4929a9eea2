import { defineConfig } from 'vitepress'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const pages = createRequire(import.meta.url)('../pages.js')
const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const [, description] = /^> (.+?\.) /m.exec(read('llms.txt'))
const [, icon] = /<link rel="icon" href="(.+?)">/.exec(read('viewer/page/page.html'))
const TITLES = { Optional: 'For contributors' }
const link = (path) => `/${pages.pageOf(path).replace(/(?:index)?\.md$/, '')}`

export default defineConfig({
  title: 'light-trace',
  description,
  lang: 'en',
  head: [['link', { rel: 'icon', href: icon }]],
  srcDir: '.cache/pages',
  srcExclude: ['public/**'],
  outDir: '.cache/dist',
  cacheDir: '.cache/vite',
  ignoreDeadLinks: 'localhostLinks', // links to localhost are for the reader's machine; any other dead link is an error
  markdown: { anchor: { slugify }, theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: pages.sections().map(({ title, links }) => ({
      text: TITLES[title] ?? title,
      items: links.map(({ title, path }) => ({ text: title, link: link(path) }))
    }))
  }
})

/** Makes the same anchors as GitHub, so that links to headings work in both places. */
function slugify (heading) {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-')
}
