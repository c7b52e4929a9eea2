'use strict'

// Run by scripts/apps.js in each fixture package: the contract, and the other OpenTelemetry packages that are installed only there.

const path = require('node:path')
const { test } = require('node:test')
const { contract } = require('./contract')
const { sdkInterop } = require('./sdk-interop')

const kit = require(path.join(process.env.FIXTURE, 'kit.js'))

contract(test, kit)
sdkInterop(test, kit, process.env.FIXTURE)
