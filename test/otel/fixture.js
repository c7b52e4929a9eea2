'use strict'

// Run by scripts/interop.js in each fixture package: the contract, and the company that only there is installed.

const path = require('node:path')
const { test } = require('node:test')
const { contract } = require('./contract')
const { company } = require('./sdk-interop')

const kit = require(path.join(process.env.FIXTURE, 'kit.js'))

contract(test, kit)
company(test, kit, process.env.FIXTURE)
