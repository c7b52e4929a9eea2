'use strict'

const { test } = require('tap')
const net = require('node:net')
const { once } = require('node:events')
const { spawnSync } = require('node:child_process')
const { freePort } = require('../../scripts/free-port')

const MODULE = require.resolve('../../scripts/free-port')

async function refusal (port, host) {
  const [{ code }] = await once(net.connect(port, host), 'error')
  return code
}

for (const host of ['127.0.0.1', '::1']) {
  test(`a free port at ${host} refuses connections while nobody listens, and any process can listen on it`, async (t) => {
    const port = await freePort(host)
    t.equal(await refusal(port, host), 'ECONNREFUSED')
    for (let i = 0; i < 2; i++) {
      const server = net.createServer((socket) => socket.destroy()).listen(port, host)
      await once(server, 'listening')
      await once(net.connect(port, host).resume(), 'close')
      server.close()
      await once(server, 'close')
      t.equal(await refusal(port, host), 'ECONNREFUSED')
    }
    const { stdout } = spawnSync(process.execPath, ['-e', `require('net').createServer().listen(${port}, '${host}', () => { console.log('listens'); process.exit() })`], { encoding: 'utf8' })
    t.equal(stdout, 'listens\n')
  })
}

// In a network of its own that has 31 ports.
const few = (script) => spawnSync('unshare', ['--net', 'sh', '-c', `ip link set lo up && echo 40000 40030 > /proc/sys/net/ipv4/ip_local_port_range && exec "${process.execPath}" -e '${script}'`], { encoding: 'utf8' })

test('a free port is given to no server that asks for any port', { skip: few('').status !== 0 && 'needs root, unshare and ip' }, (t) => {
  const { stdout, stderr } = few(`
    const net = require("net")
    require("${MODULE}").freePort().then((port) => {
      const given = []
      const next = () => net.createServer().on("error", () => console.log(given.includes(port), given.length > 20) || process.exit())
        .listen(0, "127.0.0.1", function () { given.push(this.address().port); next() })
      next()
    })`)
  t.equal(stdout, 'false true\n', stderr)
  t.end()
})
