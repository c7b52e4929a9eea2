'use strict'

// Installs collectors and other programs that share no code with light-trace, each from the registry of its language. They are kept in
// .cache/. Each is moved there with a rename, so that a partial installation is never used.

module.exports = { installJaeger, installRotel, installOtelcol, installGoSender, installPrometheus, installPrometheusOtlp, installPeers }

const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { run } = require('../run')

const CACHE = path.join(__dirname, '..', '..', '.cache')
const JAEGER = 'github.com/jaegertracing/jaeger/cmd/all-in-one@v1.42.0' // contains the OpenTelemetry Collector's own OTLP receiver
const ROTEL = 'rotel==0.0.1a15'
const OTELCOL = path.join(__dirname, 'otelcol')
const PROMETHEUS_OTLP = 'v0.313.5' // that is 3.13.5; v0.316.0 needs modules that the Go proxy does not have
const PEERS = [
  '@opentelemetry/instrumentation-http@0.203.0', '@opentelemetry/sdk-metrics@2.0.1', '@opentelemetry/api@1.9.0',
  '@opentelemetry/instrumentation-pino@0.50.0', '@opentelemetry/sdk-logs@0.203.0', 'pino@9.9.0'
]
const ATTEMPTS = 2 // a registry may refuse one of a thousand downloads
const DEADLINE_MS = 15 * 60_000 // Jaeger is compiled, which takes minutes on a small machine

/** @returns {Promise<string>} the path of the binary */
function installJaeger () {
  return installed('jaeger-1.42.0', 'all-in-one', 'Go 1.19 or newer', async (directory) => {
    await must('go', ['install', JAEGER], { cwd: directory, env: { ...process.env, GOBIN: directory } })
    return path.join(directory, 'all-in-one')
  })
}

/** @returns {Promise<string>} the path of the binary */
function installRotel () {
  return installed('rotel-0.0.1a15', 'rotel-agent', 'Python 3 with venv and pip', async (directory) => {
    await must('python3', ['-m', 'venv', 'venv'], { cwd: directory })
    const python = path.join(directory, 'venv', 'bin', 'python')
    await must(python, ['-m', 'pip', 'install', '--quiet', ROTEL], { cwd: directory })
    const found = await must(python, ['-c', 'import os, rotel; print(os.path.dirname(rotel.__file__))'], { cwd: directory })
    return path.join(found.trim(), 'rotel-agent')
  })
}

/** @returns {Promise<string>} the path of an OpenTelemetry Collector with the components of examples/fleet */
function installOtelcol () {
  return builtWithGo('otelcol', OTELCOL)
}

/** @returns {Promise<string>} the path of a program that sends a trace with OpenTelemetry's SDK for Go */
function installGoSender (directory) {
  return builtWithGo('go-sender', directory)
}

function builtWithGo (name, source) {
  const files = ['main.go', 'go.mod'].map((name) => path.join(source, name))
  const hash = createHash('sha256').update(files.map((file) => fs.readFileSync(file, 'utf8')).join('')) // covers versions and components
  return installed(`${name}-${hash.digest('hex').slice(0, 12)}`, name, 'Go 1.26 or newer', async (directory) => {
    for (const file of files) fs.copyFileSync(file, path.join(directory, path.basename(file)))
    await must('go', ['mod', 'tidy'], { cwd: directory })
    // The folder is inside this repository. Git fails if another user owns the repository, as in a container, so it is not asked for VCS info.
    await must('go', ['build', '-buildvcs=false', '-trimpath', '-ldflags=-s -w', '-o', name, '.'], { cwd: directory })
    return path.join(directory, name)
  })
}

/** @returns {Promise<string>} the path of Debian's prometheus; promtool is next to it */
function installPrometheus () {
  return installed('prometheus-debian', 'bin/prometheus', "Debian's apt-get and dpkg", async (directory) => {
    await must('apt-get', ['download', 'prometheus'], { cwd: directory })
    const [archive] = fs.readdirSync(directory).filter((name) => name.endsWith('.deb'))
    await must('dpkg', ['-x', archive, directory], { cwd: directory })
    fs.mkdirSync(path.join(directory, 'bin'))
    for (const name of ['prometheus', 'promtool']) fs.renameSync(path.join(directory, 'usr', 'bin', name), path.join(directory, 'bin', name))
    return path.join(directory, 'bin')
  }, 'bin')
}

/** @returns {Promise<string>} the path of a current prometheus, which accepts OTLP */
function installPrometheusOtlp () {
  return installed(`prometheus-${PROMETHEUS_OTLP}`, 'prometheus', 'Go 1.26 or newer', async (directory) => {
    // Builds from our own module, because `go install` refuses a module whose go.mod contains `replace`. Leaves out service discovery,
    // because the SDKs of its clouds take most of the compile time.
    const go = (...args) => must('go', args, { cwd: directory })
    await go('mod', 'init', 'light-trace.test/prometheus')
    await go('get', `github.com/prometheus/prometheus/cmd/prometheus@${PROMETHEUS_OTLP}`)
    await go('build', '-tags=remove_all_sd', '-o', 'prometheus', 'github.com/prometheus/prometheus/cmd/prometheus')
    return path.join(directory, 'prometheus')
  })
}

/** @returns {Promise<string>} a folder with the SDK and its instrumentations for HTTP and pino */
async function installPeers () {
  const installedPackage = await installed('peers-0.203.0', 'node_modules/@opentelemetry/instrumentation-http/package.json', 'npm', async (directory) => {
    fs.writeFileSync(path.join(directory, 'package.json'), '{ "private": true }')
    await must('npm', ['install', '--no-audit', '--no-fund', ...PEERS], { cwd: directory })
    return path.join(directory, 'node_modules')
  }, 'node_modules')
  return path.join(installedPackage, '..', '..', '..', '..')
}

/** `moved`: the part of the target that is renamed as a whole; by default only the binary. */
async function installed (name, binary, needs, install, moved = binary) {
  const target = path.join(CACHE, name, binary)
  if (fs.existsSync(target)) return target
  fs.mkdirSync(path.dirname(path.join(CACHE, name, moved)), { recursive: true })
  console.log(`installing ${name}…`)
  for (let attempt = 1; ; attempt++) {
    const directory = fs.mkdtempSync(path.join(CACHE, `${name}-`))
    try {
      fs.renameSync(await install(directory), path.join(CACHE, name, moved))
      return target
    } catch (error) {
      if (attempt === ATTEMPTS) throw new Error(`${name} could not be installed; it needs ${needs} and their registry. ${error.message}`)
      console.log(`retried after a failure: ${error.message}`)
    } finally {
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}

async function must (command, args, options) {
  const { code, output } = await run(command, args, { ...options, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`)
  return output
}
