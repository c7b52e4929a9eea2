'use strict'

// Makes X.509 certificates for the tests with node:crypto only: a P-256 key, ECDSA with SHA-256, and only the extensions that TLS checks.

const crypto = require('node:crypto')

const OID = {
  commonName: [0x55, 0x04, 0x03],
  basicConstraints: [0x55, 0x1d, 0x13],
  subjectAltName: [0x55, 0x1d, 0x11],
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]
}
const DAY_MS = 24 * 60 * 60 * 1000

module.exports = { makeCertificate }

// → { cert, key, sign } as PEM. Without an issuer the certificate is self-signed. `hosts` are names and IPv4 addresses.
function makeCertificate ({ name = 'light-trace test', hosts = ['127.0.0.1', 'localhost'], issuer, isCa = false, validFrom = Date.now() - DAY_MS, validTo = Date.now() + DAY_MS } = {}) {
  const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signer = issuer ?? { name, privateKey }
  const algorithm = sequence(der(0x06, Buffer.from(OID.ecdsaWithSha256)))
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([0x01]), crypto.randomBytes(8)])),
    algorithm,
    nameOf(signer.name),
    sequence(time(validFrom), time(validTo)),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(
      extension(OID.basicConstraints, sequence(...(isCa ? [der(0x01, Buffer.from([0xff]))] : []))),
      extension(OID.subjectAltName, sequence(...hosts.map(altName)))
    ))
  )
  const signature = crypto.sign('sha256', body, signer.privateKey)
  const bytes = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])))
  return {
    name,
    privateKey,
    cert: `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' })
  }
}

function der (tag, content) {
  const { length } = content
  const header = length < 0x80 ? [tag, length] : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(header), content])
}

function sequence (...parts) {
  return der(0x30, Buffer.concat(parts))
}

function nameOf (text) {
  return sequence(der(0x31, sequence(der(0x06, Buffer.from(OID.commonName)), der(0x0c, Buffer.from(text)))))
}

function time (ms) {
  return der(0x18, Buffer.from(new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')))
}

function extension (oid, value) {
  return sequence(der(0x06, Buffer.from(oid)), der(0x04, value))
}

function altName (host) {
  const octets = host.split('.').map(Number)
  return octets.length === 4 && octets.every(Number.isInteger) ? der(0x87, Buffer.from(octets)) : der(0x82, Buffer.from(host))
}
