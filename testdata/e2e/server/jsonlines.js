'use strict'
// The process's contract with the test that started it: one JSON object a line on stdout, one line an order on stdin.

const readline = require('readline')

// A reporter that stamps every event with the time (ms) and the given fixed fields.
exports.reporter = fixed => (ev, fields = {}) => {
  process.stdout.write(JSON.stringify({ t: Date.now(), ...fixed, ev, ...fields }) + '\n')
}

// Calls handle for every line of stdin. The end of stdin ends the process, so that nothing outlives a test that was killed.
exports.orders = handle => {
  const lines = readline.createInterface({ input: process.stdin })
  lines.on('line', line => { if (line.trim() !== '') handle(line.trim()) })
  lines.on('close', () => process.exit(0))
  process.stdout.on('error', () => process.exit(0)) // nobody reads any more
}
