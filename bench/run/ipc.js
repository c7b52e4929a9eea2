'use strict'

// Requests and responses over a child process's IPC channel. The channel is idle during a round, so it costs the measured process
// nothing.

module.exports = { answer, ask }

// For the child. handlers: { question: async (payload) => answer }
function answer (handlers) {
  process.on('message', async ({ id, question, payload }) => {
    try {
      process.send({ id, value: await handlers[question](payload) })
    } catch (error) {
      process.send({ id, error: error.stack })
    }
  })
  // Exits when the bench that started this process is gone.
  process.on('disconnect', () => process.exit(0))
}

let lastId = 0

// For the bench. Resolves with the answer; rejects with the child's error, when it exits, or after timeoutMs.
function ask (child, question, payload, timeoutMs = 120_000) {
  const id = ++lastId
  return new Promise((resolve, reject) => {
    const timer = setTimeout(onFail, timeoutMs, `gave no answer to "${question}" within ${timeoutMs} ms`)
    child.on('message', onMessage)
    child.on('exit', onExit)
    if (child.connected) child.send({ id, question, payload })
    else onFail(`has exited before it was asked "${question}"`)

    function onMessage (message) {
      if (message.id !== id) return
      if (message.error) return onFail(message.error)
      done()
      resolve(message.value)
    }
    function onExit (code, signal) {
      onFail(`exited with ${signal ?? code} while asked "${question}"`)
    }
    function onFail (why) {
      done()
      reject(new Error(`${child.title} ${why}\n${child.lastWords ?? ''}`))
    }
    function done () {
      clearTimeout(timer)
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
  })
}
