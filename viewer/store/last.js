'use strict'

// How far back an interval of time reaches, in the addresses of the API and of the page: a number and its unit, such as 90s.
const LAST = /^(?=0*[1-9])(\d{1,6})([smh])$/

module.exports = { LAST }
