'use strict'

// Node 20 and 22 never close a response that is queued behind another on a pipelined connection when the
// client leaves. There, and only there, each connection remembers its open responses and closes them.

// Taken at load: fake timers of a test replace the global one later.
const { setImmediate } = require('node:timers')

const kOpen = Symbol('light-trace.open')

function watchPipelined (socket, response, onClose) {
  if (socket === null || socket === undefined || typeof socket.on !== 'function') return
  let open = socket[kOpen]
  if (open === undefined) {
    open = socket[kOpen] = []
    // After Node's own listener, which closes the response that is being written.
    socket.on('close', () => setImmediate(closeAll, open, onClose))
  }
  open.push(response)
}

/** What has ended holds nothing: an idle connection would else keep its last request. */
function forgetPipelined (response) {
  const open = response.req?.socket?.[kOpen]
  if (open === undefined) return
  const at = open.indexOf(response)
  if (at !== -1) open.splice(at, 1)
}

function closeAll (open, onClose) {
  for (const response of open.splice(0)) onClose.call(response)
}

module.exports = { watchPipelined, forgetPipelined }
