'use strict'

// How a row of the table of options is read: what checks a value that is given, and what the setting is. OptionRow in types.d.ts says what is in it.

const { EMPTY, object, orBoolean } = require('./checks.js')

module.exports = { checkOf, group, liveRows, settle, settled }

/** @template Row, Members @param {Row} row @param {Members} members */
function group (row, members) {
  return { ...row, members }
}

/** @param {OptionRow} row @param {Record<string, OptionRow>} [moved] names that are accepted and not suggested */
function checkOf (row, meant = undefined, moved = EMPTY) {
  const { check, members, whenTrue, whenFalse, others } = own(row)
  if (check !== undefined) return check
  const checksOf = (rows) => Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, checkOf(row, meant)]))
  const checkMembers = object(checksOf(members), { meant, moved: checksOf(moved), others })
  return whenTrue === undefined ? checkMembers : orBoolean(checkMembers, whenTrue, whenFalse)
}

/** The rows that a file may change, and of each group those of its members. */
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
 * The settings of rows: what is given, else what a variable says, else the default.
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

/** What others put on Object.prototype is in no row. @param {OptionRow} row @returns {OptionRow} */
function own (row) {
  return Object.assign(Object.create(null), row)
}
