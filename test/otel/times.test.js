'use strict'

const { performance } = require('node:perf_hooks')
const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')

const HOUR = 3600e3

test('a start time is read correctly in each form of the API', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false })
  const wall = Date.now()
  const monotonic = performance.now()
  const forms = {
    'milliseconds since the epoch, before the process began': [wall - HOUR, wall - HOUR],
    'milliseconds since the epoch, years ago': [Date.UTC(1999, 0), Date.UTC(1999, 0)],
    'milliseconds since the epoch, now': [wall, wall],
    'milliseconds since the epoch, in an hour': [wall + HOUR, wall + HOUR],
    'performance.now()': [monotonic, performance.timeOrigin + monotonic],
    'performance.now() with an offset': [monotonic - 1, performance.timeOrigin + monotonic - 1],
    'a Date': [new Date(wall - HOUR), wall - HOUR],
    'an HrTime': [[Math.floor((wall - HOUR) / 1000), 0], wall - HOUR]
  }
  for (const [name, [startTime]] of Object.entries(forms)) app.lightTrace.tracer.startSpan(name, { startTime }).end(wall + 2 * HOUR)
  for (const { name, startTime } of await collector.spans()) {
    t.ok(Math.abs(startTime - forms[name][1]) < 2000, `${name}: ${new Date(startTime).toISOString()}`)
  }
})

test('times of events and ends are read in the same way', async (t) => {
  const { app, collector } = await tracedApp(t, { listen: false })
  const at = Date.now() - HOUR
  const span = app.lightTrace.tracer.startSpan('x', { startTime: at })
  span.addEvent('e', at + 1000)
  span.end(at + 2000)
  const [{ events, endTime }] = await collector.spans()
  t.equal(Math.round(events[0].time), at + 1000)
  t.equal(Math.round(endTime), at + 2000)
})
