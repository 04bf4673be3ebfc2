'use strict'
// execute in|positioned|as|at|if|unless ... run COMMAND, with as many steps as there are.

const { World, chunk } = require('../world')
const { Refusal } = require('../reader')
const position = require('../position')
const selector = require('../selector')

// Block tags a safety check may name, and blocks in them.
const TAGS = {
  air: ['air', 'cave_air', 'void_air'],
  campfires: ['campfire', 'soul_campfire'],
  fire: ['fire', 'soul_fire'],
  ice: ['ice', 'packed_ice', 'blue_ice', 'frosted_ice'],
  leaves: ['oak_leaves', 'spruce_leaves', 'birch_leaves', 'jungle_leaves', 'acacia_leaves', 'dark_oak_leaves'],
  sand: ['sand', 'red_sand', 'suspicious_sand']
}

exports.execute = {
  run (call, reader, ctx) {
    let contexts = [ctx]
    for (;;) {
      const step = reader.choice('in', 'positioned', 'as', 'at', 'if', 'unless', 'run')
      if (step === 'run') return runEach(call, reader, contexts)
      if (step !== 'if' && step !== 'unless') {
        contexts = STEPS[step](call, reader, contexts)
        continue
      }
      const test = condition(call, reader)
      if (reader.done) return contexts.forEach(each => answer(call, step, test(each), each))
      contexts = contexts.filter(each => passes(step, test(each))).map(each => ({ ...each, forked: true }))
    }
  }
}

// Each turns the contexts so far into the next ones. Without any left the line ends in silence.
const STEPS = {
  in (call, reader, contexts) {
    const word = reader.word()
    const dim = word.includes(':') ? word : `minecraft:${word}`
    if (!World.isDimension(dim)) throw new Refusal(call.texts.tr('argument.dimension.invalid', dim))
    return contexts.map(ctx => ({ ...ctx, dim }))
  },
  positioned (call, reader, contexts) {
    if (reader.peek() !== 'as') return each(reader, contexts, ctx => [{ ...ctx, pos: position.place(reader, ctx) }])
    reader.word()
    return each(reader, contexts, ctx => selector.any(call, reader, ctx).map(entity => ({ ...ctx, pos: entity.pos, forked: true })))
  },
  as (call, reader, contexts) {
    return each(reader, contexts, ctx => selector.any(call, reader, ctx).map(entity => ({ ...ctx, entity, forked: true })))
  },
  at (call, reader, contexts) {
    return each(reader, contexts, ctx => selector.any(call, reader, ctx)
      .map(entity => ({ ...ctx, pos: entity.pos, dim: entity.dim, forked: true })))
  }
}

// Reads the same argument once for each context. With no context left the argument is still read, to find what follows.
function each (reader, contexts, next) {
  const start = reader.pos
  const nowhere = { dim: 'minecraft:overworld', pos: [0, 0, 0], entity: null }
  if (contexts.length === 0) {
    next(nowhere)
    return []
  }
  return contexts.flatMap(ctx => {
    reader.pos = start
    return next(ctx)
  })
}

function runEach (call, reader, contexts) {
  const start = reader.pos
  if (reader.done) throw reader.unknown()
  for (const ctx of contexts) {
    reader.pos = start
    call.dispatch(reader, ctx)
  }
}

// Reads a condition; returns a function of the context that gives true, false or (of entities) a count.
function condition (call, reader) {
  const kind = reader.choice('block', 'entity', 'loaded', 'score')
  const start = reader.pos
  const test = {
    entity: ctx => selector.any(call, reader, ctx).length,
    block: ctx => isBlock(call, reader, ctx, block),
    loaded: ctx => isLoaded(call, reader, ctx),
    score: ctx => isScore(call, reader, ctx)
  }[kind]
  skip(reader, { entity: 1, block: 3, loaded: 3, score: 4 }[kind])
  const block = kind === 'block' && readBlock(call, reader) // wrong names are found before anything is tested
  const after = reader.pos
  return ctx => {
    reader.pos = start
    const result = test(ctx)
    reader.pos = after
    return result
  }
}

function skip (reader, words) {
  for (let i = 0; i < words; i++) reader.word()
}

// Reads a block or #tag; returns the names of the blocks it stands for.
function readBlock (call, reader) {
  const start = reader.pos
  const [, hash, name] = /^(#?)(?:minecraft:)?([^[{]*)/.exec(reader.word())
  if (hash && !TAGS[name]) throw reader.fail(start, 'arguments.block.tag.unknown', `minecraft:${name}`)
  if (!hash && !call.data.blocksByName[name]) throw reader.fail(start, 'argument.block.id.invalid', `minecraft:${name}`)
  return hash ? TAGS[name] : [name]
}

function isBlock (call, reader, ctx, wanted) {
  const [x, y, z] = position.block(reader, ctx)
  if (!call.world.reachable(ctx.dim, x, z)) throw new Refusal(call.texts.tr('argument.pos.unloaded'))
  return wanted.includes(call.world.blockAt(ctx.dim, x, y, z))
}

function isLoaded (call, reader, ctx) {
  const [x, , z] = position.block(reader, ctx)
  return call.world.forced.get(ctx.dim).has(`${chunk(x)} ${chunk(z)}`)
}

function isScore (call, reader, ctx) {
  const [holder] = selector.holders(call, reader, ctx)
  const objective = reader.word()
  reader.choice('matches')
  const value = call.world.scoreboard.value(objective, holder)
  return value !== undefined && selector.inRange(value, reader.word())
}

const passes = (step, result) => step === 'if' ? Boolean(result) : !result

function answer (call, step, result, ctx) {
  const counted = typeof result === 'number' && result > 0 ? '_count' : ''
  if (passes(step, result)) return call.say(call.texts.tr('commands.execute.conditional.pass' + counted, result))
  if (!ctx.forked) throw new Refusal(call.texts.tr('commands.execute.conditional.fail' + counted, result))
}
