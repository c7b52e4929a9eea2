'use strict'

/** A rate, per minute or per hour if it is low. The terminal and the page use it. */
function rateText (perSecond) {
  if (perSecond >= 0.095) return `${digits(perSecond)}/s`
  return perSecond * 60 >= 0.95 ? `${digits(perSecond * 60)}/min` : `${digits(perSecond * 3600)}/h`
}

function digits (number) {
  return number >= 9.95 || Number.isInteger(number) ? String(Math.round(number)) : number.toFixed(1)
}

module.exports = { rateText }
