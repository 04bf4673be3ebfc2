'use strict'
// The game's own English texts for one version, as minecraft-data ships them.

const minecraftData = require('minecraft-data')

class Texts {
  constructor (version) {
    this.language = minecraftData(version).language || {}
  }

  // Whether this version knows the text; a command whose texts are missing does not exist in it.
  has (key) {
    return key in this.language
  }

  // Fills a format string: %s in order, %1$s by place, %% for a percent sign. An unknown key stands for itself, as in the game.
  tr (key, ...args) {
    let next = 0
    return (this.language[key] ?? key).replace(/%(?:%|(?:(\d+)\$)?s)/g, (match, place) => {
      if (match === '%%') return '%'
      return String(args[place ? place - 1 : next++] ?? '')
    })
  }
}

// Java's "%f".
const fixed6 = value => Number(value).toFixed(6)

// Java's Double.toString: a decimal point always, E-notation from 1e7 and below 1e-3.
function javaDouble (value) {
  const size = Math.abs(value)
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const [mantissa, exponent] = value.toExponential().split('e')
    return `${mantissa.includes('.') ? mantissa : mantissa + '.0'}E${Number(exponent)}`
  }
  return Number.isInteger(value) ? `${value}.0` : String(value)
}

// Java's Float.toString, for numbers a float holds in few digits.
const javaFloat = value => javaDouble(Number(Math.fround(value).toPrecision(7)))

module.exports = { Texts, fixed6, javaDouble, javaFloat }
