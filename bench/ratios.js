'use strict'

// The ratios that CI holds, as data. Both sides come from the same round of the same run, so a slow or
// busy machine moves both; and both keep a record of process.nextTick, so that it does not matter when V8 last collected its
// garbage (lib/runtime/next-tick.js).

const { spread } = require('./run/statistics')

const ratios = [
  { name: 'off to floor, CPU', of: 'lighttrace-off', to: 'als-floor-kept-tick', figure: cpu },
  { name: 'unsampled to floor, CPU', of: 'lighttrace-unsampled', to: 'als-floor-kept-tick', figure: cpu },
  { name: 'every request to bare, CPU', of: 'lighttrace-100', to: 'bare-kept-tick', figure: cpu },
  { name: 'every request to floor, CPU', of: 'lighttrace-100', to: 'als-floor-kept-tick', figure: cpu },
  { name: 'every request to bare, RSS', of: 'lighttrace-100', to: 'bare-kept-tick', figure: ({ rssMB }) => rssMB }
]

module.exports = { measureRatios }

// rounds: { case: [figures] } → [{ name, median, min, max }]
function measureRatios (rounds) {
  return ratios.map(({ name, of, to, figure }) => ({
    name,
    ...spread(rounds[of].map((round, i) => figure(round) / figure(rounds[to][i])))
  }))
}

function cpu ({ cpuMicrosPerRequest }) {
  return cpuMicrosPerRequest
}
