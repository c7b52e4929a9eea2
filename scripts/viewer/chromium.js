'use strict'

// The browser for the viewer's tests and measurements.

module.exports = { chromium }

const { existsSync } = require('node:fs')
const path = require('node:path')
const { aptInstall, directoryOf } = require('../services/install')

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome']

/** @returns {Promise<string>} the path of the program. LIGHT_TRACE_CHROMIUM overrides it. */
async function chromium () {
  const named = process.env.LIGHT_TRACE_CHROMIUM
  if (named !== undefined && existsSync(named)) return named
  // Without a font, text has no width.
  const found = locate() ?? (await aptInstall(['chromium', 'fonts-dejavu-core']), locate())
  if (found === undefined) throw new Error('missing: chromium. Install it, set LIGHT_TRACE_CHROMIUM to its path, or run as root on Debian.')
  return found
}

function locate () {
  const program = PROGRAMS.find((name) => directoryOf(name) !== undefined)
  return program && path.join(directoryOf(program), program)
}
