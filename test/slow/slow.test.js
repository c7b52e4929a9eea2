'use strict'

// The waiting times of slow requests, compared with planted causes. They are right to 10 % or 10 ms, plus the uncertainty that each request
// reports. The service measures each cause where it plants it, so that a busy machine changes both values. What the request did before and
// after is not measured, so a part of the request is at least the planted time. npm run test:suite -- slow.
// Feature: accounts

const { spawn, fork } = require('node:child_process')
const { once } = require('node:events')
const { existsSync, mkdirSync, rmdirSync, writeFileSync } = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { test, setTimeout: setTapTimeout } = require('tap')
const { setTimeout: sleep } = require('node:timers/promises')

setTapTimeout(300_000)

const PREFIX = 'light_trace.time.'
const CLOCKS_DIFFER_MS = 1 // between the CPU's clock and the loop's
const STOPPED_MS = 300
const hasThreadCpu = process.threadCpuUsage !== undefined
let service

test('the service starts', async (t) => {
  service = await start(t)
  t.same(await service.timesOf('/fast'), [{}], 'a fast request records nothing')
})

test('a timer counts as idle', async (t) => {
  let planted = await service.ask('/timer')
  let [times] = await service.times()
  // The first slow request of a process may report nothing. In that case, another process is used.
  while (times.busy === undefined) {
    service = await start(t)
    planted = await service.ask('/timer')
    ;[times] = await service.times()
  }
  hasWaited(t, times, planted.waited)
  t.equal(times.gc, undefined, 'Node was not asked for collections yet')
})

test('from the second slow request on, garbage collections are counted', async (t) => {
  const [{ waited }, [times]] = await service.explained('/timer')
  t.type(times.gc, 'number')
  hasWaited(t, times, waited)
})

test('JSON and a regular expression count as busy', async (t) => {
  const [{ took, ran }, [times]] = await service.explained('/busy')
  isWhole(t, times)
  atLeast(t, times, times.busy + times.gc + times.unscheduled, took, 'the loop did not wait')
  t.ok(times.busy + times.gc > Math.min(took, ran) - 20, 'the running code was busy, with its garbage collections')
  // A pause is longer if the CPU is taken away during it.
  if (took - ran < 20) atLeast(t, times, times.unscheduled + times.idle, times.took - ran - toleranceOf(ran), 'at most that')
  else t.comment(`other processes have the CPU: it ran for ${round(ran)} ms of ${round(took)}`)
})

test('a request that waits while another one blocks the loop is marked', async (t) => {
  const [[victim, culprit], all] = await service.explained(['/timer?ms=300', '/busy?afterMs=50'])
  const times = all.find(({ path }) => path === '/timer')
  atLeast(t, times, times.busy + times.gc + times.unscheduled, culprit.took, 'busy, although its own code waits')
  hasWaited(t, times, victim.waited - culprit.took)
})

for (const path of ['/gc', '/gc-between']) {
  test(`forced collections count as gc, even in the turn of the response: ${path}`, async (t) => {
    const [{ took }, [times]] = await service.explained(path)
    isWhole(t, times)
    atLeast(t, times, times.gc, took, 'gc')
  })
}

test('a slow upstream counts as idle', async (t) => {
  const [{ waited }, [times]] = await service.explained('/upstream')
  hasWaited(t, times, waited)
})

test('HTTP/2, streamed, hijacked and aborted responses record their times, too', async (t) => {
  for (const [path, ask] of [['/timer', () => service.send('http2')], ['/hijacked'], ['/streamed'], ['/aborted', () => service.abort('/aborted', 300)]]) {
    const [, all] = await service.explained(path, ask)
    t.same(all.map(({ path }) => path), [path])
    hasWaited(t, all[0], 190)
  }
})

test('a failed request records its times before it is slow', async (t) => {
  const [{ waited }, [times]] = await service.explained('/fails')
  hasWaited(t, times, waited)
})

test('a step of the wall clock has no effect', async (t) => {
  const [{ waited }, [times]] = await service.explained('/clock')
  hasWaited(t, times, waited)
})

test('a request that outlives the kept samples records nothing', async (t) => {
  t.same(await service.timesOf('/outlives'), [{}])
  const [, [times]] = await service.explained('/timer')
  t.ok(times.idle > 0, 'the next one does')
})

test('a process that is stopped and resumed does not blame its code', async (t) => {
  const [planted, [times]] = await service.explained('/stopped', service.askAndStop)
  t.ok(planted.took - planted.ran > 250, `${planted.took - planted.ran} ms away`)
  wasAway(t, times, planted)
})

test('nor does it after many fast requests, for most of which the CPU time was not read', async (t) => {
  for (let i = 0; i < 30; i++) await service.ask('/fast')
  await service.times()
  const [planted, [times]] = await service.explained('/stopped', service.askAndStop)
  wasAway(t, times, planted)
})

test('a stop during a wait counts as waiting, since the two look the same', async (t) => {
  const [{ waited }, [times]] = await service.explained('/stopped-idle', service.askAndStop)
  hasWaited(t, times, waited)
})

test('time in which a container\'s limit holds back the CPU is unscheduled', async (t) => {
  const limited = await start(t)
  try {
    limitCpu(t, limited.pid)
  } catch (error) {
    t.skip(`the CPU of a process cannot be limited here: ${error.message}`)
    return
  }
  const [planted, [times]] = await limited.explained('/starved')
  t.ok(planted.took - planted.ran > 100, `${planted.took - planted.ran} ms away`)
  wasAway(t, times, planted)
})

// This test comes last, because it gives the service the lowest priority.
test('time in which other processes have the CPU is unscheduled', async (t) => {
  const burners = Array.from({ length: os.availableParallelism() * 2 }, () => spawn(process.execPath, ['-e', 'const end = Date.now() + 20000; while (Date.now() < end);'], { stdio: 'ignore' }))
  t.teardown(() => burners.forEach((burner) => burner.kill('SIGKILL')))
  try {
    os.setPriority(service.pid, 10)
  } catch (error) {
    t.skip(`the priority cannot be set here: ${error.code}`)
    return
  }
  const [planted, [times]] = await service.explained('/starved')
  if (planted.took - planted.ran < 50) {
    t.skip(`the machine has enough CPUs: it got ${Math.round(planted.ran)} ms of ${Math.round(planted.took)}`)
    return
  }
  wasAway(t, times, planted)
})

/** Limits a process to a fifth of a CPU, as for a container. Throws if that is not allowed. */
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

// A part of the request is at least what its handler measured, because a busy machine also delays the request before and after the handler.
// The parts add up to the request, so that no part can contain time of another.

/** Checks that the parts add up to the request's time, within its uncertainty. */
function isWhole (t, { path, took, uncertainty, idle, busy, gc = 0, unscheduled }) {
  const sum = idle + busy + gc + unscheduled
  t.ok(Math.abs(sum - took) <= uncertainty + CLOCKS_DIFFER_MS, `${path}: the parts add up to the whole: ${round(sum)} ms of ${round(took)}, ${round(uncertainty)} ms unknown`)
}

/** Checks that the handler ran for `ran` and was waiting or off the CPU for the rest of `took`. */
function wasAway (t, times, { took, ran }) {
  isWhole(t, times)
  atLeast(t, times, times.busy + (times.gc ?? 0), ran, 'busy')
  atLeast(t, times, times.unscheduled, took - ran, 'unscheduled')
}

/** Checks that the waiting time was idle, except when other processes had the CPU. On a quiet machine it is all idle. */
function hasWaited (t, times, planted) {
  isWhole(t, times)
  atLeast(t, times, times.idle + times.unscheduled, planted, 'idle')
  t.ok(times.idle > 0, `${round(times.idle)} ms idle`)
}

/** Checks a part to 10 % or 10 ms, plus the uncertainty that the request reports. */
function atLeast (t, { uncertainty }, found, planted, what) {
  t.ok(found >= planted - toleranceOf(planted) - uncertainty, `${what}: ${round(found)} ms of ${round(planted)}, ${round(uncertainty)} ms unknown`)
}

function toleranceOf (planted) {
  return Math.max(10, planted * 0.1)
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

  async function get (path) {
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

  /** Returns the times of the spans since the last call, in milliseconds. */
  async function times () {
    const spans = await send('spans')
    return spans.map(({ attributes, duration }) => {
      const said = Object.entries(attributes).filter(([key]) => key.startsWith(PREFIX)).map(([key, seconds]) => [key.slice(PREFIX.length), seconds * 1000])
      return { path: attributes['url.path'], took: duration, ...Object.fromEntries(said) }
    })
  }

  return {
    pid: child.pid,
    ask: get,
    send,
    times,
    /**
     * Repeats the request until all spans report their times. They report nothing if another process had the CPU when the request started
     * or ended. Returns the answer and the spans' times.
     */
    async explained (path, ask = () => Array.isArray(path) ? Promise.all(path.map(get)) : get(path)) {
      for (;;) {
        const answer = await ask(path)
        let all
        do all = await times()
        while (all.length === 0) // a client that disconnects is noticed later
        if (all.every(({ busy }) => busy !== undefined)) return [answer, all]
      }
    },
    async timesOf (path) {
      await get(path)
      return (await times()).map(({ path, took, ...said }) => Object.keys(said).length === 0 ? {} : { took, ...said })
    },
    async abort (path, afterMs) {
      const request = http.get(origin + path, { agent })
      request.on('error', () => {})
      await sleep(afterMs)
      request.destroy()
    },
    /** Stops the process when it reports that it is running. */
    async askAndStop (path) {
      const asked = get(path)
      await once(child.stdout, 'data')
      await sleep(30)
      child.kill('SIGSTOP')
      await sleep(STOPPED_MS)
      child.kill('SIGCONT')
      return asked
    }
  }
}

test('with the CPU time of a thread, or of the process on Node 20', async (t) => {
  t.comment(hasThreadCpu ? 'of the thread' : 'of the process')
  t.equal(hasThreadCpu, Number(process.versions.node.split('.')[0]) > 20)
})
