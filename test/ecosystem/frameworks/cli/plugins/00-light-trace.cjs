module.exports = require('light-trace')
