'use strict'

const { spawn } = require('child_process')
const path = require('path')
const readline = require('readline')

const PATIENCE = 20000

// A Node child of this folder whose JSON lines can be waited for.
class Child {
  constructor (script, ...args) {
    this.label = [script, ...args].join(' ')
    this.events = []
    this.waiting = new Set()
    this.process = spawn(process.execPath, [path.join(__dirname, '..', script), ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.exited = new Promise(resolve => this.process.on('exit', resolve))
    readline.createInterface({ input: this.process.stdout }).on('line', line => this.onEvent(JSON.parse(line)))
  }

  onEvent (event) {
    this.events.push(event)
    for (const check of [...this.waiting]) check(event)
  }

  // Marks the present: until() then only looks at what comes after.
  mark () {
    return this.events.length
  }

  // Resolves to the first event of that kind with these fields, from the mark on.
  until (ev, fields = {}, from = 0) {
    const fits = event => event.ev === ev && Object.entries(fields).every(([name, value]) => event[name] === value)
    const known = this.events.slice(from).find(fits)
    if (known) return Promise.resolve(known)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(check)
        const last = this.events.slice(-5).map(event => JSON.stringify(event)).join('\n  ')
        reject(new Error(`${this.label}: no ${ev} ${JSON.stringify(fields)} in ${PATIENCE} ms; last events:\n  ${last}`))
      }, PATIENCE)
      const check = event => {
        if (!fits(event)) return
        clearTimeout(timer)
        this.waiting.delete(check)
        resolve(event)
      }
      this.waiting.add(check)
    })
  }

  order (line) {
    this.process.stdin.write((typeof line === 'string' ? line : JSON.stringify(line)) + '\n')
  }

  // Ends the child by the end of its stdin, as the death of its parent would.
  stop () {
    this.process.stdin.end()
    return this.exited
  }
}

module.exports = { Child }
