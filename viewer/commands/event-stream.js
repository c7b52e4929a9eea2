'use strict'

// Reads the server-sent events of our own server: `event:`, and one `data:` line of JSON.

async function * readEvents (response) {
  let rest = ''
  response.setEncoding('utf8')
  for await (const piece of response) {
    const messages = (rest + piece).split('\n\n')
    rest = messages.pop()
    for (const message of messages) {
      const event = /^event: (.*)$/m.exec(message)?.[1]
      const data = /^data: (.*)$/m.exec(message)?.[1]
      if (event !== undefined && data !== undefined) yield { event, data: JSON.parse(data) }
    }
  }
}

module.exports = { readEvents }
