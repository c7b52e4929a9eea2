'use strict'

// Imitates Lambda: calls the handler twice with an API Gateway event, and exits as soon as the last response has arrived.

process.env.AWS_LAMBDA_FUNCTION_NAME ??= 'orders' // tells light-trace that it runs on Lambda
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
  process.exit() // unsent spans are lost
}

main()
