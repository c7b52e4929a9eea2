'use strict'

// Decides which clients may read. On loopback, the Host header must be one of this machine's own names, which excludes web sites whose name
// resolves to 127.0.0.1, and the client must not be a page of another origin. With --host, the client must have the token.

const { createHash, timingSafeEqual } = require('node:crypto')

const COOKIE = 'light_trace_token'
const LOCAL_HOST = /^(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i
const LOCAL_ORIGIN = /^https?:\/\/(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i

/** @returns {string | null} the reason for a refusal */
function hostRefusal ({ headers }, { token }) {
  // With a token the name need not be checked, because the cookie is bound to the name that the user opened.
  if (token !== null || LOCAL_HOST.test(headers.host ?? '')) return null
  return 'The Host header is not an address of this machine. Use localhost or 127.0.0.1.'
}

/** @returns {string | null} the reason for a refusal */
function originRefusal ({ headers }) {
  const site = headers['sec-fetch-site']
  const isOwn = headers.origin === undefined || headers.origin === `http://${headers.host}`
  if (isOwn && (site === undefined || site === 'same-origin' || site === 'none')) return null
  return 'Pages of other origins may not read this.'
}

function hasToken ({ headers }, url, { token }) {
  if (token === null) return true
  const given = url.searchParams.get('token') ?? bearerOf(headers.authorization) ?? cookieOf(headers.cookie)
  return given !== undefined && equal(given, token)
}

function bearerOf (authorization) {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
}

function cookieOf (cookies = '') {
  for (const cookie of cookies.split(';')) {
    const [name, value] = cookie.trim().split('=')
    if (name === COOKIE) return value
  }
}

function equal (given, token) {
  const digest = (text) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

/** For a page that was opened with ?token=: sets the cookie, and redirects to the address without the token to keep it out of the history. */
function tokenRedirect (url, token) {
  const rest = new URLSearchParams(url.searchParams)
  rest.delete('token')
  const query = rest.size === 0 ? '' : `?${rest}`
  // Only one leading slash, because //elsewhere would be another host.
  return {
    'set-cookie': `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict`,
    location: `${url.pathname.replace(/^\/{2,}/, '/')}${query}`
  }
}

/** @returns {string | null | undefined} the origin, if it may send telemetry; null: it may not; undefined: the client is not a browser */
function sendingOrigin ({ headers }) {
  if (headers.origin === undefined) return undefined
  return LOCAL_ORIGIN.test(headers.origin) ? headers.origin : null
}

module.exports = { hostRefusal, originRefusal, hasToken, tokenRedirect, sendingOrigin }
