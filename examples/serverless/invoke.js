'use strict'

// Plays Lambda: calls the handler twice with an event of API Gateway, and ends the process the moment the last answer is there.

process.env.AWS_LAMBDA_FUNCTION_NAME ??= 'orders' // by which light-trace knows where it is
const { handler } = require('./handler')

const CONTEXT = {
  functionName: 'orders',
  awsRequestId: '',
  invokedFunctionArn: 'arn:aws:lambda:eu-central-1:123456789012:function:orders',
  getRemainingTimeInMillis: () => 3000
}

async function main () {
  for (const [index, id] of ['7', '8'].entries()) {
    const event = { httpMethod: 'GET', path: `/orders/${id}`, headers: {}, requestContext: {} }
    const { statusCode, body } = await handler(event, { ...CONTEXT, awsRequestId: `invocation-${index + 1}` })
    console.log(statusCode, body)
  }
  process.exit() // what has not been sent is lost
}

main()
