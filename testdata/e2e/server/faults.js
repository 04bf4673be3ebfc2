'use strict'
// What a test has ordered to go wrong, and how the answer of a command that has already taken effect suffers from it.

class Faults {
  constructor () {
    this.delays = new Map() // command -> ms
    this.drops = new Map() // command -> how many more times
    this.hung = null // resolves when the server no longer hangs
  }

  delay (command, ms) {
    if (ms > 0) this.delays.set(command, ms)
    else this.delays.delete(command)
  }

  drop (command, times) {
    if (times > 0) this.drops.set(command, times)
    else this.drops.delete(command)
  }

  hang (on) {
    if (on && !this.hung) {
      let release
      this.hung = new Promise(resolve => { release = resolve })
      this.release = release
    }
    if (!on && this.hung) {
      this.release()
      this.hung = null
    }
  }

  // Waits while the server hangs; nothing has happened yet.
  async beforeCommand () {
    if (this.hung) await this.hung
  }

  // Called with the commands a line ran; true when the connection is to be closed instead of answered.
  async beforeAnswer (ran) {
    const ms = Math.max(0, ...ran.map(command => this.delays.get(command) ?? 0))
    if (ms > 0) await new Promise(resolve => setTimeout(resolve, ms))
    const dropped = ran.find(command => this.drops.has(command))
    if (!dropped) return false
    this.drop(dropped, this.drops.get(dropped) - 1)
    return true
  }
}

module.exports = { Faults }
