'use strict'

// scripts/apps.js runs this in each fixture package: the contract, and the other OpenTelemetry packages that are only installed there.

const path = require('node:path')
const { test } = require('node:test')
const { contract } = require('./contract')
const { sdkInterop } = require('./sdk-interop')

const kit = require(path.join(process.env.FIXTURE, 'kit.js'))

contract(test, kit)
sdkInterop(test, kit, process.env.FIXTURE)
