'use strict'

// AWS Lambda's side of the runtime interface, for a real process. It hands out an event, and freezes the process (SIGSTOP) as soon
// as the answer arrives, until the next event. The process can send what is left only after the thaw.
//
//   const lambda = await startLambda(t, { traceOptions: { exporter: { url } } })
//   const { answer, error } = await lambda.invoke('/orders/1')

const http = require('node:http')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')

const PROGRAM = path.join(__dirname, '../fixtures/serverless/lambda.js')
const ARN = 'arn:aws:lambda:eu-central-1:123456789012:function:orders'
const INVOCATION_MS = 30_000

module.exports = { startLambda, ARN }

async function startLambda (t, { traceOptions = {}, flushOptions = {}, isCallbackStyle = false, env = {} } = {}) {
  const lambda = new Lambda()
  t.teardown(() => lambda.end())
  await lambda.start({ ...env, FUNCTION_OPTIONS: JSON.stringify({ traceOptions, flushOptions, isCallbackStyle }) })
  return lambda
}

class Lambda {
  stderr = ''
  #server = http.createServer((request, response) => this.#onRequest(request, response))
  #process = null
  #waiting = null // the runtime's pending request for the next event
  #queued = null // an event that the runtime has not requested yet
  #answered = null
  #count = 0

  async start (env) {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#process = spawn(process.execPath, [PROGRAM], {
      env: {
        PATH: process.env.PATH,
        AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${this.#server.address().port}`,
        AWS_LAMBDA_FUNCTION_NAME: 'orders',
        AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
        AWS_REGION: 'eu-central-1',
        ...env
      },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    this.#process.stderr.setEncoding('utf8').on('data', (text) => { this.stderr += text })
  }

  /** @returns {Promise<{ answer?: object, error?: string, frozenAt: number }>} when the process is frozen */
  invoke (rawPath, { headers = {}, traceHeader = '', method = 'GET', timeLeftMs = INVOCATION_MS } = {}) {
    return new Promise((resolve) => {
      this.#answered = resolve
      const event = { version: '2.0', rawPath, headers, requestContext: { http: { method, sourceIp: '203.0.113.7' } } }
      this.#queued = {
        body: JSON.stringify(event),
        headers: {
          'lambda-runtime-aws-request-id': `request-${++this.#count}`,
          'lambda-runtime-invoked-function-arn': ARN,
          'lambda-runtime-deadline-ms': String(Date.now() + timeLeftMs),
          'lambda-runtime-trace-id': traceHeader
        }
      }
      this.#process.kill('SIGCONT')
      this.#giveEvent()
    })
  }

  async end () {
    this.#process?.kill('SIGKILL')
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #onRequest (request, response) {
    request.on('error', () => {})
    response.on('error', () => {})
    if (request.url.endsWith('/next')) {
      this.#waiting = response
      this.#giveEvent()
      return
    }
    let text = ''
    for await (const part of request.setEncoding('utf8')) text += part
    // Before the process knows that its answer has arrived.
    this.#process.kill('SIGSTOP')
    response.writeHead(202).end()
    const body = JSON.parse(text)
    this.#answered(request.url.endsWith('/error') ? { error: body.errorMessage } : { answer: body })
  }

  #giveEvent () {
    if (this.#waiting === null || this.#queued === null) return
    const { headers, body } = this.#queued
    this.#waiting.writeHead(200, headers).end(body)
    this.#waiting = this.#queued = null
  }
}
