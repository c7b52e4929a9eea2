'use strict'

// Uses the example projects, as scripts/suites.js installed them, in the way that a new user does.

module.exports = { startExample, runScript, ended, sinkFor, byStart, tree, promised, directoryOf }

const { spawn } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { drawTree, spanLabel } = require('../../lib/features/console')
const { environment } = require('../../scripts/apps')
const { startSink } = require('./otlp-sink')
const { ROOT } = require('./program')

function directoryOf (name) {
  return join(process.env.EXAMPLES_DIRECTORY, name)
}

/** Starts a sink. Returns it with the variable that points an example to it. */
async function sinkFor (t) {
  const sink = await startSink(t)
  return { sink, endpoint: { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin } }
}

/**
 * Starts an example with `npm start`.
 * @returns {{ output: (pattern: RegExp) => Promise<RegExpExecArray>, stop: () => Promise<void> }} output: resolves to the match when
 *   it is printed; stop: sends Ctrl-C and waits until all its processes have ended
 */
function startExample (t, name, env) {
  const npm = runScript('start', directoryOf(name), env)
  t.teardown(() => npm.signal('SIGKILL'))
  return {
    async stop () {
      npm.signal('SIGINT')
      await npm.end
    },
    output: (pattern) => new Promise((resolve, reject) => {
      npm.onOutput((text) => {
        const match = pattern.exec(text)
        if (match !== null) resolve(match)
      })
      npm.end.then(({ code, output }) => reject(new Error(`npm start of ${name} ended with ${code}: ${output}`)))
    })
  }
}

/** Runs an npm script of the project in a directory. It gets its own process group, as in a terminal, because npm's shell does not forward signals. */
function runScript (script, directory, env = {}) {
  const child = spawn('npm', ['run', script], { cwd: directory, env: { ...withoutTracer(environment()), ...env }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const listeners = []
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece) => {
      output += piece
      for (const listen of listeners) listen(output)
    })
  }
  return {
    end: new Promise((resolve) => child.once('close', (code, signal) => resolve({ code: code ?? signal, output }))),
    signal (name) {
      try {
        process.kill(-child.pid, name)
      } catch (error) {
        if (error.code !== 'ESRCH') throw error // all processes have ended
      }
    },
    onOutput (listen) {
      listeners.push(listen)
      listen(output)
    }
  }
}

/** @returns {Promise<{ code: number, output: string }>} of a script that ends by itself */
function ended (script, directory, env) {
  return runScript(script, directory, env).end
}

function withoutTracer (env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('OTEL_')))
}

/** Draws the spans of a sink in the style of the examples' READMEs. */
function tree (spans, label = labelOf) {
  return drawTree([...spans].sort(byStart), label)
}

function byStart (a, b) {
  return Number(a.start - b.start)
}

function labelOf ({ kind, name, status, attributes }) {
  const system = attributes['db.system.name']
  return spanLabel({ kind, name: system === undefined ? name : `${system} ${name}`, status: status.code, errorType: attributes['error.type'] })
}

/** Returns the last block without a language in an example's README: the output that it promises. */
function promised (name) {
  const readme = readFileSync(join(ROOT, 'examples', name, 'README.md'), 'utf8')
  return [...readme.matchAll(/^```(\w*)\n(.*?)\n```$/gms)].findLast(([, language]) => language === '')[2]
}
