'use strict'

// What slow requests say that they waited for, against causes that are planted: right to 10 % or 10 ms. The service measures what
// it plants where it does it, so that a busy machine changes both alike. npm run test:slow.

const { spawn, fork } = require('node:child_process')
const { once } = require('node:events')
const { existsSync, mkdirSync, rmdirSync, writeFileSync } = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { test, setTimeout: setTapTimeout } = require('tap')
const { setTimeout: sleep } = require('node:timers/promises')

setTapTimeout(60_000)

const PREFIX = 'light_trace.time.'
const hasThreadCpu = process.threadCpuUsage !== undefined
let service

test('the service starts', async (t) => {
  service = await start(t)
  t.same(await service.timesOf('/fast'), [{}], 'a fast request says nothing')
})

test('a timer is idle', async (t) => {
  const { waited } = await service.ask('/timer')
  const [times] = await service.times()
  isIdle(t, times, waited)
  near(t, times.idle + times.busy + times.unscheduled, times.took, 'the parts are the whole')
  t.equal(times.gc, undefined, 'Node was not asked for collections yet')
})

test('from the second slow request on collections are counted', async (t) => {
  const [times] = await service.timesOf('/timer')
  t.type(times.gc, 'number')
  near(t, times.idle + times.busy + times.gc + times.unscheduled, times.took, 'the parts are the whole')
})

test('JSON and a regular expression are busy', async (t) => {
  const { took, ran } = await service.ask('/busy')
  const [times] = await service.times()
  near(t, times.busy + times.gc + times.unscheduled, took, 'the loop did not wait')
  near(t, times.idle, 0, 'idle')
  t.ok(times.busy + times.gc > Math.min(took, ran) - 20, 'what ran was busy, with the collections of its garbage')
  // A pause is longer where the CPU is away during it.
  if (took - ran < 20) near(t, times.busy + times.gc, ran, 'no more than that')
  else t.comment(`others have the CPU: it ran for ${round(ran)} ms of ${round(took)}`)
})

test('a request that waits while another one blocks the loop is told so', async (t) => {
  const [victim, culprit] = await Promise.all([service.ask('/timer?ms=300'), sleep(50).then(() => service.ask('/busy'))])
  const times = (await service.times()).find(({ path }) => path === '/timer')
  near(t, times.idle + times.busy + times.gc + times.unscheduled, victim.waited, 'the parts are the whole')
  t.ok(times.busy + times.gc + times.unscheduled > culprit.took - 10, 'busy, though its own code waits')
  isIdle(t, times, victim.waited - culprit.took)
})

for (const path of ['/gc', '/gc-between']) {
  test(`forced collections are gc, also in the turn of the response: ${path}`, async (t) => {
    const { took } = await service.ask(path)
    const [times] = await service.times()
    near(t, times.gc, took, 'gc')
    near(t, times.busy, 0, 'busy')
  })
}

test('a slow upstream is idle', async (t) => {
  const { waited } = await service.ask('/upstream')
  const [times] = await service.times()
  near(t, times.idle + times.busy + times.gc + times.unscheduled, times.took, 'the parts are the whole')
  isIdle(t, times, waited)
})

test('HTTP/2, streamed, hijacked and aborted responses say it too', async (t) => {
  await service.send('http2')
  for (const path of ['/hijacked', '/streamed']) await service.ask(path)
  await service.abort('/aborted', 300)
  const all = await service.times()
  t.same(all.map(({ path }) => path).sort(), ['/aborted', '/hijacked', '/streamed', '/timer'])
  for (const { path, idle, busy, gc, unscheduled, took } of all) {
    near(t, idle + busy + gc + unscheduled, took, `${path}: the parts are the whole`)
    t.ok(idle + unscheduled > 190, `${path}: ${round(idle)} ms idle, ${round(unscheduled)} ms not running`)
  }
})

test('one that failed says it before it is slow', async (t) => {
  const { waited } = await service.ask('/fails')
  const [times] = await service.times()
  isIdle(t, times, waited)
})

test('a step of the wall clock is not seen', async (t) => {
  const { waited } = await service.ask('/clock')
  const [times] = await service.times()
  isIdle(t, times, waited)
})

test('a request that outlives the samples that are kept says nothing', async (t) => {
  t.same(await service.timesOf('/outlives'), [{}])
  t.ok((await service.timesOf('/timer'))[0].idle > 0, 'and the next one does')
})

test('a process that is stopped and goes on does not blame its code', async (t) => {
  const asked = service.ask('/stopped')
  await service.running()
  await service.stopFor(300)
  const { took, ran } = await asked
  const [times] = await service.times()
  t.ok(took - ran > 250, `${took - ran} ms away`)
  near(t, times.unscheduled, took - ran, 'unscheduled')
})

test('so it is after many fast ones, for most of which the CPU time was not read', async (t) => {
  for (let i = 0; i < 30; i++) await service.ask('/fast')
  await service.times()
  const asked = service.ask('/stopped')
  await service.running()
  await service.stopFor(300)
  const { took, ran } = await asked
  const [times] = await service.times()
  near(t, times.unscheduled, took - ran, 'unscheduled')
  near(t, times.busy + times.gc, ran, 'busy')
})

test('stopped while it waits it has waited: nobody can tell the two apart', async (t) => {
  const asked = service.ask('/stopped-idle')
  await service.running()
  await service.stopFor(300)
  const { waited } = await asked
  const [times] = await service.times()
  isIdle(t, times, waited)
  t.ok(times.busy < 30, `${times.busy} ms busy`)
})

test('a CPU that a container\'s limit holds back is unscheduled', async (t) => {
  const limited = await start(t)
  try {
    limitCpu(t, limited.pid)
  } catch (error) {
    t.skip(`the CPU of a process cannot be limited here: ${error.message}`)
    return
  }
  // Held back just where a request ends, nothing is known of it and nothing is said: then the next one is asked.
  let asked, times
  for (let tries = 0; times?.busy === undefined && tries < 5; tries++) {
    asked = await limited.ask('/starved')
    times = (await limited.times())[0]
  }
  const { took, ran } = asked
  t.ok(took - ran > 100, `${took - ran} ms away`)
  // It is held back for 80 ms at a time, also between its handler and the ends of the request.
  near(t, times.unscheduled, times.took - ran, 'unscheduled')
  near(t, times.busy, ran, 'busy')
})

// Last: it gives the service the lowest priority.
test('a CPU that others have is unscheduled', async (t) => {
  const burners = Array.from({ length: os.availableParallelism() * 2 }, () => spawn(process.execPath, ['-e', 'const end = Date.now() + 20000; while (Date.now() < end);'], { stdio: 'ignore' }))
  t.teardown(() => burners.forEach((burner) => burner.kill('SIGKILL')))
  try {
    os.setPriority(service.pid, 10)
  } catch (error) {
    t.skip(`the priority cannot be set here: ${error.code}`)
    return
  }
  const { took, ran } = await service.ask('/starved')
  const [times] = await service.times()
  if (took - ran < 50) {
    t.skip(`the machine has CPUs enough: it got ${Math.round(ran)} ms of ${Math.round(took)}`)
    return
  }
  near(t, times.unscheduled, took - ran, 'unscheduled')
  near(t, times.busy + times.gc, ran, 'busy')
})

/** Lets a process have a fifth of a CPU, as a container does. Throws where that is not allowed. */
function limitCpu (t, pid) {
  const isUnified = existsSync('/sys/fs/cgroup/cgroup.controllers')
  const root = isUnified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu'
  const group = path.join(root, `light-trace-${pid}`)
  mkdirSync(group)
  t.teardown(() => {
    writeFileSync(path.join(root, 'cgroup.procs'), String(pid))
    rmdirSync(group)
  })
  const [file, limit] = isUnified ? ['cpu.max', '20000 100000'] : ['cpu.cfs_quota_us', '20000']
  writeFileSync(path.join(group, file), limit)
  writeFileSync(path.join(group, 'cgroup.procs'), String(pid))
}

/** Right to 10 % or 10 ms, and the request's own bound of error. */
function near (t, found, planted, what) {
  t.ok(Math.abs(found - planted) <= Math.max(10, planted * 0.1), `${what}: ${round(found)} ms of ${round(planted)}`)
}

/** What waited was idle, but for what others took of the CPU meanwhile: on a quiet machine nothing. */
function isIdle (t, times, planted) {
  const away = Math.min(times.unscheduled, planted)
  const tolerance = Math.max(10, planted * 0.1)
  t.ok(times.idle <= planted + tolerance && times.idle >= planted - away - tolerance, `idle: ${round(times.idle)} ms of ${round(planted)}, ${round(away)} ms away`)
}

function round (ms) {
  return Math.round(ms * 100) / 100
}

async function start (t) {
  const child = fork(path.join(__dirname, 'service.js'), { execArgv: ['--expose-gc'], stdio: ['ignore', 'pipe', 'inherit', 'ipc'], env: { PATH: process.env.PATH } })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  require('tap').teardown(kill)
  const [{ http: origin }] = await once(child, 'message')
  const agent = new http.Agent({ keepAlive: true })

  async function ask (path) {
    const request = http.get(origin + path, { agent })
    const [response] = await once(request, 'response')
    let body = ''
    for await (const part of response.setEncoding('utf8')) body += part
    return body.startsWith('{') ? JSON.parse(body) : {}
  }

  async function send (asked) {
    child.send(asked)
    return (await once(child, 'message'))[0]
  }

  /** What the spans since the last call say, in milliseconds. */
  async function times () {
    const spans = await send('spans')
    return spans.map(({ attributes, duration }) => {
      const said = Object.entries(attributes).filter(([key]) => key.startsWith(PREFIX)).map(([key, seconds]) => [key.slice(PREFIX.length), seconds * 1000])
      return { path: attributes['url.path'], took: duration, ...Object.fromEntries(said) }
    })
  }

  return {
    pid: child.pid,
    ask,
    send,
    times,
    async timesOf (path) {
      await ask(path)
      return (await times()).map(({ path, took, ...said }) => Object.keys(said).length === 0 ? {} : { took, ...said })
    },
    async abort (path, afterMs) {
      const request = http.get(origin + path, { agent })
      request.on('error', () => {})
      await sleep(afterMs)
      request.destroy()
    },
    running: () => once(child.stdout, 'data'),
    async stopFor (ms) {
      await sleep(30)
      child.kill('SIGSTOP')
      await sleep(ms)
      child.kill('SIGCONT')
    }
  }
}

test('with a thread\'s own CPU time, or the process\'s on Node 20', async (t) => {
  t.comment(hasThreadCpu ? 'of the thread' : 'of the process')
  t.equal(hasThreadCpu, Number(process.versions.node.split('.')[0]) > 20)
})
