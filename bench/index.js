'use strict'

// npm run bench: the README's table, measured on this machine.
// npm run bench -- <name> [options]: another benchmark. Its file lists the options.

const BENCHES = ['seeds', 'faults', 'micro', 'next-tick', 'viewer']

const [,, name = 'seeds'] = process.argv
if (name.startsWith('-')) require('./seeds')
else if (BENCHES.includes(name)) {
  process.argv.splice(2, 1)
  require(`./${name}`)
} else {
  console.error(`no bench is called "${name}"; there are ${BENCHES.join(', ')}; bench/README.md lists the others`)
  process.exitCode = 1
}
