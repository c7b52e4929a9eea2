'use strict'

// Reads callgrind's output: how many instructions each function executed, by kind.
//
// Node's binary has symbols for builtins and native functions. A function that has only an address is JavaScript that V8 compiled.
// V8's compiler and garbage collector call shared functions (malloc, memcpy), so these two are counted inclusive of their callees.

const fs = require('node:fs')

const COMPILER = /^v8::internal::Runtime_\w*(?:Compile|Optimi[sz]e|BytecodeBudgetInterrupt|Tier)\w*\(/
// Excludes the lambda that CollectGarbage runs through another function: its callees would be counted twice.
const COLLECTOR = /^v8::internal::(?!.*\{lambda)(?:Heap::CollectGarbage\(|IncrementalMarkingJob::Task::RunInternal|IncrementalMarking::AdvanceOnAllocation|Heap::FinalizeIncrementalMarking)/
const KINDS = ['javascript', 'builtins', 'gc', 'native']

const RECURSION = /'\d+$/ // callgrind's suffix for recursive calls

module.exports = { readProfile, KINDS }

/**
 * @param {string} file
 * @returns {{ total: number, javascript: number, builtins: number, gc: number, native: number, compiler: number,
 *   functions: Map<string, number> }} total excludes the compiler; functions: self cost, by name or address
 */
function readProfile (file) {
  const functions = new Map()
  const apart = { compiler: 0, gc: 0 }
  readLines(fs.readFileSync(file, 'latin1'), (name, cost) => {
    functions.set(name, (functions.get(name) ?? 0) + cost)
  }, (caller, callee, cost) => {
    if (COMPILER.test(callee) && !COMPILER.test(caller)) apart.compiler += cost
    else if (COLLECTOR.test(callee) && !COLLECTOR.test(caller)) apart.gc += cost
  })
  let all = 0
  let javascript = 0
  let builtins = 0
  for (const [name, cost] of functions) {
    all += cost
    if (name.startsWith('0x')) javascript += cost
    else if (name.startsWith('Builtins_')) builtins += cost
  }
  const total = all - apart.compiler
  return { total, javascript, builtins, ...apart, native: total - javascript - builtins - apart.gc, functions }
}

// Format: "Callgrind Format Specification" in valgrind's manual. A name is written out once, then referred to by number.
function readLines (text, onOwn, onCall) {
  const names = new Map()
  let caller = ''
  let callee = ''
  let isCall = false
  for (const line of text.split('\n')) {
    if (isCostLine(line)) {
      const cost = Number(line.slice(line.lastIndexOf(' ') + 1))
      if (isCall) onCall(caller, callee, cost)
      else onOwn(caller, cost)
      isCall = false
    } else if (line.startsWith('fn=')) caller = nameIn(names, line.slice(3))
    else if (line.startsWith('cfn=')) callee = nameIn(names, line.slice(4))
    else if (line.startsWith('calls=')) isCall = true
  }
}

// A cost line begins with a line number, absolute or relative to the previous one, and ends with the cost.
function isCostLine (line) {
  const first = line.charCodeAt(0)
  return (first >= 0x30 && first <= 0x39) || first === 0x2b || first === 0x2d || first === 0x2a
}

function nameIn (names, text) {
  const [, number, name] = /^\((\d+)\)(?: (.*))?$/.exec(text)
  if (name !== undefined) names.set(number, name.replace(RECURSION, ''))
  return names.get(number)
}
