'use strict'

// The page: one file, with a policy that allows its own inline scripts and styles and nothing else.

const { createHash } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')

const FILE = join(__dirname, '../page.html')
const PAGES = /^\/(?:$|traces\/|routes|exceptions|flame|compare|lost)/

const FIXED_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin'
}

let loaded = null

function isPage (path) {
  return PAGES.test(path)
}

function sendPage (response) {
  loaded ??= load()
  response.writeHead(200, { ...FIXED_HEADERS, 'content-security-policy': loaded.policy, 'content-length': loaded.html.length }).end(loaded.html)
}

function load () {
  const html = readFileSync(FILE)
  return { html, policy: policyOf(html.toString()) }
}

function policyOf (html) {
  return [
    "default-src 'none'",
    `script-src ${hashesOf('script', html)}`,
    `style-src ${hashesOf('style', html)}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join('; ')
}

function hashesOf (element, html) {
  const hashes = [...html.matchAll(new RegExp(`<${element}[^>]*>([\\s\\S]*?)</${element}>`, 'g'))]
    .map(([, content]) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`)
  return hashes.join(' ') || "'none'"
}

module.exports = { isPage, sendPage, FIXED_HEADERS }
