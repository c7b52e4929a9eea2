'use strict'

// `configFile`: rates without a deploy. What the file says holds in place of the options, from the moment when it is written.
//
// It is looked at once a second, by its name: an editor's new file, a mount of Kubernetes and a link that is turned are all seen.

const fs = require('node:fs')
const { isatty } = require('node:tty')
const { samplerOf } = require('../sampling/sampler.js')
const { counted, printable } = require('../runtime/report.js')
const { clearInterval, setInterval } = require('../runtime/timers.js')
const { readFile, withoutMark } = require('../config/checks.js')
const { resolveLive } = require('../config/options.js')

const LOOK_MS = 1000
// Two writes within one tick of the file system's clock, 2 s at most, may differ in nothing but the text: so many looks read it again.
const REREADS = 2

class LiveFile {
  #path
  #apply
  #report
  #text // as it was read last; null where it could not be
  #version = '' // of what was read last
  #rereads = 0 // that are left
  #timer = null
  #isLooking = false
  #unsaid = 0 // failures since the last line about one
  #wrong = '' // of the last

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

  /** Applies what the file says now. A file that is wrong changes nothing. */
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
      if (text === null && this.#text === null) return // it was said
      this.#unsaid++
      this.#wrong = whatIsWrong(error)
      this.#say()
    } finally {
      this.#text = text
    }
  }

  /** What writes a wrong file again and again does not fill the log: the next line has the last failure, and how many came before it. */
  #say () {
    if (this.#unsaid === 0) return
    const message = `${printable(this.#path)} is ignored${unsaid(this.#unsaid - 1)}: ${this.#wrong}`
    if (this.#report.warn('LT_WARN_CONFIG_FILE', message, this.#path)) this.#unsaid = 0
  }

  #textOf () {
    this.#version = ''
    this.#version = versionOf(fs.statSync(this.#path)) // before it is read: what is written meanwhile is another one
    return withoutMark(readFile(this.#path).toString())
  }

  watch () {
    // Not fs.watchFile: it would not see what is written before its first look.
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
    listening.add(this)
    // In a terminal the signal is its end, and the process's.
    if (listening.size === 1 && process.platform !== 'win32' && !isatty(0)) process.on('SIGHUP', onSighup)
  }

  /** One look at a time: a file of a server that hangs takes one of the threads, not all. */
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

// What JSON.parse says quotes the text, which may be any file.
function whatIsWrong (error) {
  return error instanceof SyntaxError ? 'not valid JSON' : error.message
}

function unsaid (count) {
  return count === 0 ? '' : `, after ${counted(count, 'other')} that changed nothing`
}

/** A sampler in whose place another may be put. */
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

/** An application's options that the file may change. */
class LiveOptions {
  #tracer
  #file
  #ignore
  #sampler // as the file says
  #isUnheard = false // as was said
  logs = undefined // as the file says

  constructor (tracer) {
    const { settings, report, sampler } = tracer
    this.#tracer = tracer
    this.#ignore = settings.ignore
    tracer.ignore = (request) => this.#ignore !== null && this.#ignore(request)
    if (!sampler.isCustom) tracer.sampler = new LiveSampler(sampler, report)
    this.#file = new LiveFile(settings.configFile, (live) => this.#adjust(live), report)
    this.#file.read()
  }

  /** Applies what the file says, and the options where it says nothing. */
  #adjust ({ sampler, keep, slow, ignore, logs }) {
    const tracer = this.#tracer
    const { settings, parts } = tracer
    const appLogs = parts.get('logs')
    appLogs?.checkLevels(logs) // throws: a file that is wrong changes nothing
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

  /** Says once that a sampler is set in vain because something of an SDK's decides. */
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
