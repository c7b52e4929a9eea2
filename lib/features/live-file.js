'use strict'

// `configFile`: changes sampling rates without a deploy. The settings in the file override the options as soon as it is written.
//
// The file is checked once a second by its name. This notices a file replaced by an editor, a Kubernetes mount and a changed link.

const fs = require('node:fs')
const { isatty } = require('node:tty')
const { samplerOf } = require('../sampling/sampler.js')
const { counted, printable } = require('../runtime/report.js')
const { clearInterval, setInterval } = require('../runtime/timers.js')
const { readFile, withoutMark } = require('../config/checks.js')
const { resolveLive } = require('../config/options.js')

const LOOK_MS = 1000
// Two writes within one tick of the file system's clock, 2 s at most, may differ only in the text. So a changed file is read again at
// each of the next checks, this many times.
const REREADS = 2

class LiveFile {
  #path
  #apply
  #report
  #text // of the last read; null if it failed
  #version = '' // of the last read
  #rereads = 0 // still to do
  #timer = null
  #isLooking = false
  #unsaid = 0 // failures since the last one that was logged
  #wrong = '' // what was wrong at the last failure

  /**
   * @param {string} path
   * @param {(live: ReturnType<typeof resolveLive>) => void} apply
   * @param {Report} report
   */
  constructor (path, apply, report) {
    this.#path = path
    this.#apply = apply
    this.#report = report
  }

  /** Applies the settings in the file. An invalid file changes nothing. */
  read (rereads = REREADS) {
    this.#rereads = rereads
    let text = null
    try {
      text = this.#textOf()
      if (text === this.#text) return
      this.#apply(resolveLive(JSON.parse(text)))
      if (this.#text !== undefined) this.#report.info(`${printable(this.#path)} has changed and is applied${unsaid(this.#unsaid)}`)
      this.#unsaid = 0
    } catch (error) {
      if (text === null && this.#text === null) return // already reported
      this.#unsaid++
      this.#wrong = whatIsWrong(error)
      this.#say()
    } finally {
      this.#text = text
    }
  }

  /** Reports the last failure and the number of earlier ones. A file that is rewritten wrongly many times does not fill the log. */
  #say () {
    if (this.#unsaid === 0) return
    const message = `${printable(this.#path)} is ignored${unsaid(this.#unsaid - 1)}: ${this.#wrong}`
    if (this.#report.warn('LT_WARN_CONFIG_FILE', message, this.#path)) this.#unsaid = 0
  }

  #textOf () {
    this.#version = ''
    this.#version = versionOf(fs.statSync(this.#path)) // before the read: a write in between then gives a different version
    return withoutMark(readFile(this.#path).toString())
  }

  watch () {
    // Not fs.watchFile: it misses what is written before its first check.
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
    listening.add(this)
    // In a terminal, SIGHUP means that the terminal has closed, and the process should end.
    if (listening.size === 1 && process.platform !== 'win32' && !isatty(0)) process.on('SIGHUP', onSighup)
  }

  /** Runs one check at a time: a network file system that hangs blocks one thread of the pool, not all. */
  #look () {
    if (this.#isLooking) return
    this.#isLooking = true
    fs.stat(this.#path, (error, stats) => {
      this.#isLooking = false
      const version = error === null ? versionOf(stats) : ''
      if (this.#timer === null) return
      this.#say()
      if (version !== this.#version) this.read()
      else if (this.#rereads > 0) this.read(this.#rereads - 1)
    })
  }

  close () {
    clearInterval(this.#timer)
    this.#timer = null
    if (listening.delete(this) && listening.size === 0) process.off('SIGHUP', onSighup)
  }
}

const listening = new Set()

function onSighup () { for (const file of listening) file.read() }

function versionOf ({ ino, size, mtimeMs, ctimeMs }) {
  return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
}

// JSON.parse quotes the text in its message, and the path may point to any file.
function whatIsWrong (error) {
  return error instanceof SyntaxError ? 'not valid JSON' : error.message
}

function unsaid (count) {
  return count === 0 ? '' : `, after ${counted(count, 'other')} that changed nothing`
}

/** A sampler that can be replaced by another one. */
class LiveSampler {
  #report

  constructor (sampler, report) {
    this.#report = report
    this.sampler = sampler
    /** @type {false} */
    this.isCustom = false
    this.tracestate = ''
  }

  use (option) { this.sampler = samplerOf(option, this.#report) }

  // HOT, once per request where `configFile` is set.
  decide (context, hasParent, now, route) { return this.sampler.decide(context, hasParent, now, route) }
}

/** The options of an application that the file can change. */
class LiveOptions {
  #tracer
  #file
  #ignore
  #sampler // from the file
  #isUnheard = false // whether the warning about a sampler without effect was logged
  logs = undefined // from the file

  constructor (tracer) {
    const { settings, report, sampler } = tracer
    this.#tracer = tracer
    this.#ignore = settings.ignore
    tracer.ignore = (request) => this.#ignore !== null && this.#ignore(request)
    if (!sampler.isCustom) tracer.sampler = new LiveSampler(sampler, report)
    this.#file = new LiveFile(settings.configFile, (live) => this.#adjust(live), report)
    this.#file.read()
  }

  /** Applies the settings in the file, and the options for all others. */
  #adjust ({ sampler, keep, slow, ignore, logs }) {
    const tracer = this.#tracer
    const { settings, parts } = tracer
    const appLogs = parts.get('logs')
    appLogs?.checkLevels(logs) // first, since it may throw: an invalid file changes nothing
    if (!tracer.sampler.isCustom) tracer.sampler.use(sampler ?? settings.sampler)
    this.#sampler = sampler
    this.#ignore = ignore === undefined ? settings.ignore : ignore
    Object.assign(tracer.slow, slow ?? settings.slow)
    parts.get('accounts')?.slowChanged()
    parts.get('keep')?.use(keep === undefined ? settings.keep : keep)
    this.#warnAboutUnheard()
    this.logs = logs
    appLogs?.setLevels(logs)
  }

  /** Warns once that the file's sampler has no effect because an SDK decides. */
  #warnAboutUnheard () {
    const { sampler, output, report } = this.#tracer
    if (output === null || this.#sampler === undefined || this.#isUnheard) return
    const isByProvider = output.sdkSpans !== null
    if (isByProvider || sampler.isCustom) {
      this.#isUnheard = true
      report.warn('LT_WARN_CONFIG_FILE', `configFile: sampler has no effect: ${isByProvider ? "the tracer provider's sampler decides" : 'an SDK Sampler decides'}`)
    }
  }

  open () {
    this.#warnAboutUnheard()
    this.#tracer.output.suppress(() => this.#file.watch())
  }

  stop () { this.#file.close() }
}

module.exports = { attach: (tracer) => new LiveOptions(tracer), LiveFile }
