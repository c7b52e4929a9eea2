'use strict'

// Certificates and keys for the collector, read once at boot. A certificate that is replaced on disk
// counts from the next start.

const fs = require('node:fs')
const { X509Certificate } = require('node:crypto')
const { optionInvalid } = require('./errors')

// A bundle of every public authority is a quarter of this.
const FILE_BYTES_MAX = 1024 * 1024

const VARIABLES = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' }

module.exports = { checkPem, resolveTls }

// PEM as text or bytes, or the path of a file that holds it. No error shows what came: it may be the key.
function checkPem (path, value) {
  const kind = Buffer.isBuffer(value) ? 'a Buffer' : `a value of type ${typeof value}`
  const pem = Buffer.isBuffer(value) ? value : typeof value === 'string' ? textOrFile(value) : null
  if (pem === null) throw optionInvalid(path, `PEM, or the path of a readable PEM file of at most ${FILE_BYTES_MAX} bytes`, kind)
  const reason = unusable({ [path.slice(path.lastIndexOf('.') + 1)]: pem })
  if (reason !== null) throw optionInvalid(path, 'PEM that Node can read', `${kind} (${reason})`)
  return pem
}

function textOrFile (value) {
  return value.includes('-----BEGIN') ? Buffer.from(value) : readBounded(value)
}

// For an https: URL.
function resolveTls (given, env) {
  const tls = {}
  for (const name of Object.keys(VARIABLES)) tls[name] = given[name] ?? fromEnvironment(VARIABLES[name], name, env)
  const reason = unusable(tls)
  if (reason === null) return tls
  // Certificate and key do not belong together. The authority alone still protects what is sent.
  env.warn('LT_WARN_TLS', `the client's certificate and key are not used: ${reason}`)
  return { ca: tls.ca, cert: undefined, key: undefined }
}

function fromEnvironment (suffix, name, env) {
  const variable = env.find(`OTEL_EXPORTER_OTLP_TRACES_${suffix}`, `OTEL_EXPORTER_OTLP_${suffix}`)
  if (variable === undefined) return undefined
  const pem = readBounded(variable.value)
  const reason = pem === null ? 'it must be the path of a readable file' : unusable({ [name]: pem })
  if (reason === null) return pem
  env.warn('LT_WARN_TLS', `${variable.name} is ignored: ${reason}`)
}

function readBounded (path) {
  try {
    const { size } = fs.statSync(path)
    return size > 0 && size <= FILE_BYTES_MAX ? fs.readFileSync(path) : null
  } catch {
    return null
  }
}

// Node's own opinion, so that nothing is left to be thrown at the first export. OpenSSL's code names the
// fault and nothing of the content. node:tls is loaded only by who needs it.
function unusable ({ ca, cert, key }) {
  if (ca === undefined && cert === undefined && key === undefined) return null
  try {
    require('node:tls').createSecureContext({ ca, cert, key })
    if (ca !== undefined) parse(ca)
    return null
  } catch (error) {
    return typeof error.code === 'string' ? error.code : 'it cannot be read'
  }
}

// createSecureContext passes over an authority that is none in silence.
function parse (ca) {
  return new X509Certificate(ca)
}
