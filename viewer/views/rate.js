'use strict'

/** A rate: 12.5/s, or 3/min and 2/h if it is lower; null is not known. The terminal and the page use it. */
function rateText (perSecond) {
  if (perSecond === null) return '–'
  if (perSecond >= 0.95) return `${digits(perSecond)}/s`
  if (perSecond * 60 >= 0.95 || perSecond === 0) return `${digits(perSecond * 60)}/min`
  return `${digits(perSecond * 3600)}/h`
}

function digits (number) {
  return String(number >= 9.95 ? Math.round(number) : Number(number.toFixed(1)))
}

module.exports = { rateText }
