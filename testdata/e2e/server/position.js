'use strict'
// Coordinates as commands write them. Every function returns numbers and moves the reader.

// x y z of a place: relative to the context with ~, whole x and z mean the middle of the block, y never does.
exports.place = (reader, ctx) => [
  coordinate(reader, ctx.pos[0], true),
  coordinate(reader, ctx.pos[1], false),
  coordinate(reader, ctx.pos[2], true)
]

// x z of a place, likewise.
exports.column = (reader, ctx) => [coordinate(reader, ctx.pos[0], true), coordinate(reader, ctx.pos[2], true)]

// x y z of a block.
exports.block = (reader, ctx) => [0, 1, 2].map(axis => blockCoordinate(reader, ctx.pos[axis]))

// x z of a block column.
exports.blockColumn = (reader, ctx) => [blockCoordinate(reader, ctx.pos[0]), blockCoordinate(reader, ctx.pos[2])]

function coordinate (reader, base, centred) {
  if (reader.peek().startsWith('~')) return base + offset(reader)
  const whole = !reader.peek().includes('.')
  return reader.number() + (whole && centred ? 0.5 : 0)
}

function blockCoordinate (reader, base) {
  if (reader.peek().startsWith('~')) return Math.floor(base + offset(reader))
  return reader.integer()
}

function offset (reader) {
  const start = reader.pos
  const word = reader.word().slice(1)
  if (word === '') return 0
  if (!/^-?\d*\.?\d+$/.test(word)) throw reader.fail(start, 'parsing.double.invalid', word)
  return Number(word)
}
