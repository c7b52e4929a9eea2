'use strict'

// Names of query parameters that carry credentials.

// The conventions' own, which they compare with case, and which no rule below has.
const SIGNATURES = new Set(['sig'])

// Names are compared without case, separators and trailing digits: access_token, accessToken, user[access-token].
const CREDENTIALS = new Set([
  'code', 'authcode', 'authorizationcode', 'codeverifier', 'devicecode', 'usercode', 'verificationcode', 'resetcode', 'recoverycode', 'otpcode', 'mfacode', 'otp', 'totp', 'pin',
  'auth', 'authorization', 'bearer', 'cookie', 'csrf', 'xsrf', 'hmac', 'jwt', 'pass', 'pwd', 'samlart', 'samlrequest', 'samlresponse', 'sas',
  'session', 'sessionid', 'sessid', 'phpsessid', 'jsessionid', 'connectsid', 'sid', 'sign', 'accesskeyid', 'awsaccesskeyid'
])

// What ends in one of these is one too: refresh_token, X-Amz-Security-Token, client_secret, new_password.
const ENDINGS = ['accesskey', 'apikey', 'assertion', 'credential', 'credentials', 'passphrase', 'passwd', 'password', 'privatekey', 'secret', 'secretkey', 'signature', 'token']

class CredentialNames {
  #others

  /** @param {string[]} others the user's own, beside ours */
  constructor (others) {
    this.#others = new Set(others.map(normalised))
  }

  /** @param {string} given as it came, decoded */
  has (given) {
    if (SIGNATURES.has(given)) return true
    const name = normalised(given)
    return CREDENTIALS.has(name) || this.#others.has(name) || ENDINGS.some((ending) => name.endsWith(ending))
  }
}

function normalised (name) {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '').replace(/(?<=\D)\d{1,4}$/, '')
}

module.exports = { CredentialNames }
