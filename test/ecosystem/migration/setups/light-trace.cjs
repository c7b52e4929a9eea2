'use strict'

require('light-trace/register')
