'use strict'

// What is active where nothing is: the ROOT_CONTEXT of the API's copy that the application uses, with which it compares.
// light-trace does not load the API (20 ms). Who asks has loaded it, so it is looked for then, once.

const { EMPTY_CONTEXT } = require('../context/suppressed')
const { findApi } = require('./api-version')

let root = null

function rootContext () {
  if (root === null) root = findApi(undefined).copies.find(hasRoot)?.ROOT_CONTEXT ?? EMPTY_CONTEXT
  return root
}

/** An ES module's own copy of the API, which nothing but an import finds. */
function useRootOf (copy) {
  if (hasRoot(copy)) root = copy.ROOT_CONTEXT
}

function hasRoot (copy) {
  return typeof copy?.ROOT_CONTEXT?.getValue === 'function'
}

module.exports = { rootContext, useRootOf }
