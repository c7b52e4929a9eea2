// All text that is shown comes from senders. A span's name may hold control characters, marks that change the text direction, half a
// surrogate pair, or ten megabytes. The text is made visible and cut here, and it only ever becomes the textContent of an element.

import { MS_IN } from '../otlp/units.js'

export const LINE_MAX = 300
export const BLOCK_MAX = 20_000

// Left and right marks, embeddings, isolates, zero-width characters, line separators, C0, DEL, C1. The joiner and
// non-joiner are kept, because emoji and Persian need them.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu
// eslint-disable-next-line no-control-regex
const HIDDEN_IN_BLOCK = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

/** One line of text. */
export function line (value, max = LINE_MAX) {
  const text = textOf(value)
  return visible(cut(text, max), HIDDEN) + (text.length > max ? '…' : '')
}

/** Text with its line breaks and tabs. `left`: the number of characters that were cut. */
export function block (value, max = BLOCK_MAX) {
  const text = textOf(value)
  return { text: visible(cut(text, max), HIDDEN_IN_BLOCK), left: Math.max(0, text.length - max) }
}

/** The value of an attribute as text. Lists and maps become JSON. */
export function textOf (value) {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function visible (text, hidden) {
  return text.toWellFormed().replace(hidden, (character) => {
    const code = character.codePointAt(0)
    if (code === 0x0a) return '↵'
    if (code === 0x09) return '⇥'
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  })
}

function cut (text, max) {
  return text.length > max ? text.slice(0, max) : text
}

/** @param {number} ms */
export function duration (ms) {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 0) return `−${duration(-ms)}`
  if (ms === 0) return '0'
  if (ms < 0.9995) return `${fixed(ms * 1000)} µs`
  if (ms < 999.5) return `${fixed(ms)} ms`
  if (ms < 60_000) return `${fixed(ms / 1000)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} m ${Math.floor(ms % 60_000 / 1000)} s`
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms % 3_600_000 / 60_000)} m`
}

/** A round duration, for a scale. */
export function short (ms) {
  return trimmed(duration(ms))
}

/** A formatted number without the zeros at its end, for a scale. */
export function trimmed (text) {
  return text.replace(/\.0+(?!\d)|(\.\d*?)0+(?!\d)/, '$1')
}

// Bytes of OpenTelemetry's units of size.
const SIZES = { By: 1, kBy: 1e3, MBy: 1e6, GBy: 1e9, KiBy: 1024, MiBy: 1024 ** 2, GiBy: 1024 ** 3 }

/** A value of a metric in its unit. An annotation such as `{request}` and the unit 1 are left out. */
export function quantity (value, unit = '') {
  if (unit in MS_IN) return duration(value * MS_IN[unit])
  if (Object.hasOwn(SIZES, unit)) return value < 0 ? `−${bytes(-value * SIZES[unit])}` : bytes(value * SIZES[unit])
  return number(value) + (unit === '' || unit === '1' || unit.startsWith('{') ? '' : ` ${line(unit, 20)}`)
}

/** A number with three significant digits. */
export function number (value) {
  if (!Number.isFinite(value)) return '–'
  if (value < 0) return `−${number(-value)}`
  return Number.isInteger(value) && value < 1e12 ? count(value) : value < 0.001 || value >= 1e12 ? value.toExponential(1) : value < 99.95 ? fixed(value) : count(value)
}

// Three significant digits, for tables.
function fixed (number) {
  return number < 9.995 ? number.toFixed(2) : number < 99.95 ? number.toFixed(1) : String(Math.round(number))
}

/** @param {number} ms since 1970 */
export function clock (ms) {
  const date = new Date(ms)
  return Number.isNaN(date.getTime())
    ? '–'
    : [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':') +
      '.' + String(date.getMilliseconds()).padStart(3, '0')
}

/** The hour and minute. @param {number} ms since 1970 */
export function time (ms) {
  return clock(ms).slice(0, 5)
}

/** Groups digits by three. Not with toLocaleString, because its first call in a page takes as long as drawing all rows. */
export function count (number) {
  return Number.isFinite(number) ? String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f') : '–'
}

export function plural (number, noun, many = noun + 's') {
  return `${count(number)} ${number === 1 ? noun : many}`
}

export function bytes (number) {
  return number < 1000 ? `${Math.round(number)} B` : number < 1e6 ? `${(number / 1e3).toFixed(1)} kB` : number < 1e9 ? `${(number / 1e6).toFixed(1)} MB` : `${(number / 1e9).toFixed(2)} GB`
}

export function percent (part) {
  return part === 0 ? '0 %' : part < 0.001 ? '< 0.1 %' : part < 0.0995 ? `${(part * 100).toFixed(1)} %` : `${Math.round(part * 100)} %`
}

/** The kinds of waits of a slow request, in the order of a row's `waits`, and what they mean. docs/slow.md has the same words. */
export const WAITS = ['Waiting', 'Busy event loop', 'Garbage collection', 'Not running']
export const WAIT_MEANINGS = ['for calls, timers, the client', 'JavaScript ran, for this request or another', '', 'the thread had work but did not run']

export function waitText (waits) {
  return waits.map((ms, i) => ms > 0 && `${WAITS[i].toLowerCase()} ${duration(ms)}`).filter(Boolean).join(', ')
}

/** @param {number[]} counts number of slow requests for each longest wait */
export function reasons (counts) {
  return counts.map((times, i) => times > 0 && `${count(times)} ${WAITS[i].toLowerCase()}`).filter(Boolean).join(' · ')
}
