'use strict'

// The program of the worker that watches the event loop, see blocked-loop.js. It is a string and not the source of a function, because
// a bundler would insert its own names for `require` and for helpers, which do not exist in the worker.

const PROGRAM = `
'use strict'
const { Session } = require('node:inspector')
const { workerData: { origin, afterMs, command, words } } = require('node:worker_threads')
const [BEAT, AWAKE, BLOCKED, ASKED_AT, TICK, CONNECTED] = words.keys()
const session = new Session()
session.connectToMainThread() // what forbids it is known at the start
session.disconnect()
const worker = {
  /** Waits for a loop that is blocked. The answers of the session are read between two of them. */
  look () {
    while (Atomics.load(words, AWAKE) !== -1) {
      Atomics.wait(words, AWAKE, 0)
      const waitsMs = afterMs - (this.now() - Atomics.load(words, BEAT) | 0)
      if (waitsMs > 0) this.sleep(AWAKE, 1, waitsMs)
      else if (Atomics.load(words, AWAKE) === 1) {
        this.ask()
        return setImmediate(() => this.look())
      }
    }
  },

  /** Asks the main thread for its stack until the loop is back. */
  ask () {
    Atomics.store(words, CONNECTED, 1)
    Atomics.store(words, BLOCKED, 1)
    Atomics.store(words, ASKED_AT, 0)
    session.connectToMainThread()
    for (let count = 0; Atomics.load(words, BLOCKED) === 1 && Atomics.load(words, AWAKE) === 1; count++) {
      if (Atomics.compareExchange(words, ASKED_AT, 0, this.now()) === 0) {
        session.post('Runtime.evaluate', { expression: command, silent: true })
      }
      this.sleep(BLOCKED, 1, count < 50 ? 10 : 100)
    }
    session.disconnect()
    Atomics.store(words, CONNECTED, 0)
    Atomics.notify(words, CONNECTED)
  },

  // Who sleeps for much too long was stopped, or had no CPU, and so had the main thread.
  sleep (word, value, ms) {
    const before = this.now()
    Atomics.wait(words, word, value, ms)
    const after = this.now()
    Atomics.store(words, TICK, after)
    if ((after - before | 0) - ms > afterMs / 2) Atomics.store(words, BEAT, after)
  },

  now () {
    return (Number(process.hrtime.bigint()) / 1e6 - origin) | 0
  }
}
worker.look()
`

module.exports = { PROGRAM }
