'use strict'

// Node 20 and 22 never close a response that is queued behind another on a pipelined connection when the
// client leaves. There, and only there, each connection remembers its open responses and closes them.

// Taken at load: fake timers of a test replace the global one later.
const { setImmediate } = require('node:timers')

const kOpen = Symbol('light-trace.open')

const isNeeded = Number(process.versions.node.split('.')[0]) < 24

function watchPipelined (socket, response, onClose) {
  if (socket === null || socket === undefined || typeof socket.on !== 'function') return
  let open = socket[kOpen]
  if (open === undefined) {
    open = socket[kOpen] = []
    // After Node's own listener, which closes the response that is being written.
    socket.on('close', () => setImmediate(closeAll, open, onClose))
  }
  // Those that have ended are let go of when the next one comes: usually exactly one.
  let kept = 0
  for (const other of open) if (!other.closed) open[kept++] = other
  open.length = kept
  open.push(response)
}

function closeAll (open, onClose) {
  for (const response of open.splice(0)) onClose.call(response)
}

module.exports = { watchPipelined: isNeeded ? watchPipelined : null }
