'use strict'

// Who may read. On loopback: whoever asks this machine by one of its own names (a page of the web that has its name point to
// 127.0.0.1 does not) and is no page of another origin. Opened by --host: whoever has the token.

const { createHash, timingSafeEqual } = require('node:crypto')

const COOKIE = 'light_trace_token'
const LOCAL_HOST = /^(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i
const LOCAL_ORIGIN = /^https?:\/\/(?:localhost|[\w-]+(?:\.[\w-]+)*\.localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i

/** @returns {string | null} why not */
function hostRefusal ({ headers }, { token }) {
  // With a token a name proves nothing: the cookie is bound to the name that the user opened.
  if (token !== null || LOCAL_HOST.test(headers.host ?? '')) return null
  return 'The Host header names no address of this machine. Ask for localhost or 127.0.0.1.'
}

/** @returns {string | null} why not */
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

/** For a page that was opened with ?token=: the cookie and the address without it, so that it stays in no history. */
function tokenRedirect (url, token) {
  const rest = new URLSearchParams(url.searchParams)
  rest.delete('token')
  const query = rest.size === 0 ? '' : `?${rest}`
  // One slash: //elsewhere would be another host.
  return {
    'set-cookie': `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict`,
    location: `${url.pathname.replace(/^\/{2,}/, '/')}${query}`
  }
}

/** @returns {string | null | undefined} the origin that may send telemetry; null: none may; undefined: it is no browser */
function sendingOrigin ({ headers }) {
  if (headers.origin === undefined) return undefined
  return LOCAL_ORIGIN.test(headers.origin) ? headers.origin : null
}

module.exports = { hostRefusal, originRefusal, hasToken, tokenRedirect, sendingOrigin }
