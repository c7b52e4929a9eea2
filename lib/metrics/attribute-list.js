'use strict'

// Attributes as a user gives them, as the flat list that a series keeps. Maps and bytes, which spans may have, name no
// series: no backend of metrics knows them.

const { setAttributes } = require('../span/attributes')

/** Never throws but for what a getter of the user's throws. */
function attributeList (attributes, countMax, lengthMax) {
  const all = []
  setAttributes(all, attributes, countMax, lengthMax)
  const list = []
  for (let i = 0; i < all.length; i += 2) if (isPlain(all[i + 1])) list.push(all[i], all[i + 1])
  return list
}

function isPlain (value) {
  return typeof value !== 'object' || (Array.isArray(value) && value.every((item) => item === null || typeof item !== 'object'))
}

module.exports = { attributeList }
