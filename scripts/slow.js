'use strict'

// npm run test:slow [-- 20 24]
//
// What slow requests say that they waited for, against causes that are planted, on each Node. One process at a time, and nothing
// beside it: these tests are about durations.

const { installNode, nodeBinary } = require('./matrix-cell')
const { runFiles, testsIn } = require('./tests')

const NODES = ['20', '22', '24', '26']

main(process.argv.slice(2)).then((code) => { process.exitCode = code })

async function main (asked) {
  const total = { passed: 0, failed: 0 }
  for (const node of asked.length > 0 ? asked : NODES) {
    console.log(`Node ${node}`)
    await installNode(node)
    const { passed, failed } = await runFiles(testsIn('test/slow'), { node: nodeBinary(node) })
    total.passed += passed
    total.failed += failed
  }
  console.log(`${total.passed} passed, ${total.failed} failed`)
  return total.failed === 0 ? 0 : 1
}
