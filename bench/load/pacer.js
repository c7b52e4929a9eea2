'use strict'

// Sends `rate` requests a second, evenly: at each turn of the event loop what has become due since
// the last one. The load process has its core to itself, so it may spin.
//
// A request that was due while no connection was free is sent late, and its latency counts from when
// it was due (no coordinated omission).

module.exports = startPacer

function startPacer (clients, rate, pipelining) {
  const started = performance.now()
  let sent = 0
  let next = 0
  let running = true
  let unsent = 0 // due and never sent: more than a handful means that the rate was not reached
  setImmediate(turn)
  return { stop, behind: () => unsent }

  function turn () {
    if (!running) return
    const now = performance.now()
    const due = Math.floor((now - started) * rate / 1000)
    while (sent < due) {
      const client = freeClient()
      if (client === null) break
      client.lateMicros = Math.max(0, (now - started - sent * 1000 / rate) * 1000)
      client.sendNow()
      sent++
    }
    setImmediate(turn)
  }

  function freeClient () {
    for (let i = 0; i < clients.length; i++) {
      const client = clients[next]
      next = (next + 1) % clients.length
      if (client.reqsMade - client.answered < pipelining) return client
    }
    return null
  }

  function stop () {
    running = false
    unsent = Math.max(0, Math.floor((performance.now() - started) * rate / 1000) - sent)
  }
}
