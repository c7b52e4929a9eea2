'use strict'

const SHOWN_MS = 10 // processes of one host differ by a millisecond or two

/**
 * 'clock +3 h 0 m': how far a span was moved into its parent, because the clocks differ. The terminal and the page use it.
 * @param {{ shift?: number, above?: { shift?: number } | null }} row
 * @param {(ms: number) => string} duration
 * @returns {string | undefined} undefined if it was moved by little or with its parent
 */
function clockText ({ shift = 0, above }, duration) {
  if (Math.abs(shift) < SHOWN_MS || shift === above?.shift) return undefined
  return `clock ${shift > 0 ? '+' : ''}${duration(shift)}`
}

module.exports = { clockText }
