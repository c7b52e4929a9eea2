'use strict'

// Libraries that publish no channels, and whose calls have spans only by `traceClient`: where one is loaded and no client of it was
// given, that is logged once. What is loaded is read off Node's cache of modules; nothing is patched to find out.

const PACKAGE = /[\\/]node_modules[\\/](pg|knex|mongodb|postgres|mysql2|mongoose)[\\/]/

// What loads it for itself, or traces it otherwise.
const USED_BY = { pg: 'knex', knex: 'mysql2', mongodb: 'mongoose', postgres: '' }

const settledKinds = new Set() // traced, or reported: another application of the process need not say it again

/** @returns {string[]} the names of those that it has logged now */
function reportUntraced (report) {
  const loaded = new Set(Object.keys(require.cache ?? {}).map((file) => PACKAGE.exec(file)?.[1]))
  const names = Object.keys(USED_BY).filter((name) => loaded.has(name) && !settledKinds.has(name) && !loaded.has(USED_BY[name]))
  for (const name of names) settledKinds.add(name)
  if (names.length > 0) {
    report.info(`the calls of ${names.join(', ')} are not traced: pass the client or pool to lightTrace.traceClient() once, see docs/outbound.md`)
  }
  return names
}

module.exports = { settledKinds, reportUntraced }
