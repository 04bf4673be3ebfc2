'use strict'
// Reads a command line from left to right and makes the game's error texts, which show the line from ten characters before the mistake.

// A refusal whose message is the text the game answers with.
class Refusal extends Error {}

class Reader {
  constructor (line, texts) {
    this.line = line
    this.texts = texts
    this.pos = 0
  }

  get done () {
    return this.pos >= this.line.length
  }

  // The word at the cursor without moving it; '' at the end.
  peek () {
    return this.line.slice(this.pos, this.endOfWord())
  }

  // The word at the cursor, which moves behind the following blank. At the end of the line the command is incomplete.
  word () {
    if (this.done) throw this.unknown()
    const end = this.endOfWord()
    const word = this.line.slice(this.pos, end)
    this.pos = Math.min(end + 1, this.line.length)
    return word
  }

  // Everything from the cursor on.
  rest () {
    const rest = this.line.slice(this.pos)
    this.pos = this.line.length
    return rest
  }

  // Nothing may follow.
  end () {
    if (!this.done) throw this.unknown()
  }

  // One of the given words, or the line is wrong here.
  choice (...words) {
    const start = this.pos
    const word = this.word()
    if (words.includes(word)) return word
    this.pos = start
    throw this.unknown()
  }

  integer () {
    const start = this.pos
    const word = this.word()
    if (!/^-?\d+$/.test(word)) throw this.fail(start, 'parsing.int.invalid', word)
    return Number(word)
  }

  number () {
    const start = this.pos
    const word = this.word()
    if (!/^-?\d*\.?\d+$/.test(word)) throw this.fail(start, 'parsing.double.invalid', word)
    return Number(word)
  }

  // The command or the argument at the cursor is not known.
  unknown () {
    const key = this.pos === 0 || this.done ? 'command.unknown.command' : 'command.unknown.argument'
    return this.fail(this.pos, key)
  }

  fail (at, key, ...args) {
    const shown = (at > 10 ? '...' : '') + this.line.slice(Math.max(0, at - 10))
    return new Refusal(this.texts.tr(key, ...args) + shown + this.texts.tr('command.context.here'))
  }

  // A word ends at a blank that is in no bracket, brace or quotation.
  endOfWord () {
    let depth = 0
    let quoted = false
    let i = this.pos
    for (; i < this.line.length; i++) {
      const char = this.line[i]
      if (char === '"') quoted = !quoted
      if (quoted) continue
      if (char === '[' || char === '{') depth++
      if (char === ']' || char === '}') depth--
      if (char === ' ' && depth <= 0) break
    }
    return i
  }
}

module.exports = { Reader, Refusal }
