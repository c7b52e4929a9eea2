'use strict'

// Serves the page: one file, with a content security policy that allows only its own inline scripts and styles.

const { createHash } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')

const FILE = join(__dirname, '../page.html')
const PAGES = /^\/(?:$|traces\/|routes|exceptions|flame|compare|lost|logs|metrics|services)/
const TRACE_PAGE = /^\/traces\/(\w+)$/

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

/** @returns {string | undefined} the id or other name of the trace that the page shows */
function traceOf (path) {
  return TRACE_PAGE.exec(path)?.[1]
}

/**
 * @param {() => object | null} [firstRows] makes the first rows of a trace. It runs while the browser reads the page. The page's script runs
 *   when the whole page has arrived, so it draws the first rows without a request.
 */
async function sendPage (response, firstRows) {
  loaded ??= load()
  const { start, end, policy } = loaded
  response.writeHead(200, { ...FIXED_HEADERS, 'content-security-policy': policy }).write(start)
  if (firstRows !== undefined) {
    await new Promise(setImmediate)
    response.write(dataOf(firstRows))
  }
  response.end(end)
}

// For the browser this is data and not a script, so it cannot run. Without `<` it cannot end its own element.
function dataOf (firstRows) {
  try {
    const rows = firstRows()
    return rows === null ? '' : `<script type="application/json" id="rows">${JSON.stringify(rows).replaceAll('<', '\\u003c')}</script>\n`
  } catch {
    return '' // the page then requests the rows, and shows the error
  }
}

function load () {
  const html = readFileSync(FILE, 'utf8')
  const at = html.lastIndexOf('</body>')
  return { start: html.slice(0, at), end: html.slice(at), policy: policyOf(html) }
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

module.exports = { isPage, traceOf, sendPage, FIXED_HEADERS }
