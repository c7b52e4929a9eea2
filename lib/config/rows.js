'use strict'

// Reads rows of the table of options: makes the check of a given value, and the setting. OptionRow in types.d.ts describes a row.

const { EMPTY, object, orBoolean } = require('./checks.js')

module.exports = { checkOf, group, liveRows, settle, settled }

/** @template Row, Members @param {Row} row @param {Members} members */
function group (row, members) {
  return { ...row, members }
}

/** @param {OptionRow} row @param {Record<string, OptionRow>} [moved] names that are accepted but not suggested */
function checkOf (row, meant = undefined, moved = EMPTY) {
  const { check, members, whenTrue, whenFalse, others } = own(row)
  if (check !== undefined) return check
  const checksOf = (rows) => Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, checkOf(row, meant)]))
  const checkMembers = object(checksOf(members), { meant, moved: checksOf(moved), others })
  return whenTrue === undefined ? checkMembers : orBoolean(checkMembers, whenTrue, whenFalse)
}

/** Returns the rows that `configFile` may change, with only those members of each group that it may change. */
function liveRows (rows) {
  return Object.fromEntries(Object.entries(rows).flatMap(([name, whole]) => {
    const { live, members, ...row } = own(whole)
    if (members === undefined) return live === true ? [[name, whole]] : []
    if (live === true) return [[name, { ...whole, members: Object.fromEntries(Object.entries(members).filter(([, row]) => own(row).live !== false)) }]]
    const some = liveRows(members)
    return Object.keys(some).length > 0 ? [[name, { ...row, members: some, whenTrue: undefined, check: undefined }]] : []
  }))
}

/**
 * Returns the settings of rows: the given value, else that of a variable, else the default.
 * @template {Record<string, any>} Rows @param {Rows} rows @returns {SettingsOf<Rows>}
 */
function settle (rows, given, context) {
  const settings = {}
  for (const [name, row] of Object.entries(rows)) settings[name] = settled(row, given[name], context)
  return /** @type {any} */ (Object.freeze(settings))
}

/** @param {OptionRow} row */
function settled (row, given, context = EMPTY) {
  const { check, members, variables, read = variables && check.read, default: otherwise = null, resolve } = own(row)
  let value = given ?? read?.(variables, context.env, context) ?? otherwise
  if (members !== undefined && check === undefined) value = value ? settle(members, value, context) : otherwise
  return value === null || resolve === undefined ? value : resolve(value, context)
}

/** Copies a row without prototype, so that it inherits nothing that others put on Object.prototype. @param {OptionRow} row @returns {OptionRow} */
function own (row) {
  return Object.assign(Object.create(null), row)
}
