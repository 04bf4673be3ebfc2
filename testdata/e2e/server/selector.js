'use strict'
// Targets of commands: names, UUIDs, @a @p @r @s @e with type, tag, name, scores, limit, sort.

const { Refusal } = require('./reader')

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const IGNORED = ['sort', 'distance', 'x', 'y', 'z', 'dx', 'dy', 'dz', 'gamemode', 'level', 'team', 'nbt']

// At least one entity.
exports.entities = (call, reader, ctx) => found(call, read(reader, call.world).find(ctx), 'argument.entity.notfound.entity')

// Exactly one entity; a selector that allows more is an error whatever it finds.
exports.entity = (call, reader, ctx) => {
  const selector = read(reader, call.world)
  if (!selector.single) throw reader.fail(0, 'argument.entity.toomany')
  return found(call, selector.find(ctx), 'argument.entity.notfound.entity')[0]
}

// At least one player; a selector that allows other entities is an error whatever it finds.
exports.players = (call, reader, ctx) => {
  const selector = read(reader, call.world)
  if (!selector.playersOnly) throw reader.fail(0, 'argument.player.entities')
  return found(call, selector.find(ctx), 'argument.entity.notfound.player')
}

// Any number of entities: what execute works with.
exports.any = (call, reader, ctx) => read(reader, call.world).find(ctx)

// Names of score holders: a name needs no such player, * is everybody with a score.
exports.holders = (call, reader, ctx) => {
  const word = reader.peek()
  if (word.startsWith('@')) return exports.entities(call, reader, ctx).map(exports.holderName)
  reader.word()
  if (word !== '*') return [word]
  const tracked = call.world.scoreboard.tracked()
  if (tracked.length === 0) throw new Refusal(call.texts.tr('argument.scoreHolder.empty'))
  return tracked
}

exports.holderName = entity => entity.name ?? entity.uuid

function found (call, list, key) {
  if (list.length === 0) throw new Refusal(call.texts.tr(key))
  return list
}

function read (reader, world) {
  const start = reader.pos
  const word = reader.word()
  if (UUID.test(word)) return byUuid(word.toLowerCase(), world)
  if (!word.startsWith('@')) return byName(word.replace(/^"(.*)"$/, '$1'), world)
  const match = /^@([aeprs])(?:\[(.*)\])?$/.exec(word)
  if (!match) throw reader.fail(start, 'argument.entity.selector.unknown', word.slice(0, 2))
  return byVariable(match[1], options(reader, start, match[2] ?? ''), world)
}

function byUuid (uuid, world) {
  const find = () => everybody(world).filter(entity => entity.uuid === uuid)
  return { single: true, playersOnly: false, find }
}

function byName (name, world) {
  return { single: true, playersOnly: true, find: () => [world.player(name)].filter(Boolean) }
}

function byVariable (variable, tests, world) {
  const limit = tests.limit ?? (variable === 'p' || variable === 'r' || variable === 's' ? 1 : Infinity)
  const playersOnly = variable !== 'e' || tests.type === 'player'
  const find = ctx => {
    const all = variable === 's' ? [ctx.entity].filter(Boolean) : playersOnly ? [...world.players.values()] : everybody(world)
    return all.filter(entity => tests.all.every(test => test(entity, world))).slice(0, limit)
  }
  return { single: limit === 1, playersOnly: playersOnly || variable === 's', find }
}

const everybody = world => [...world.players.values(), ...world.visibleEntities()]

// Turns "type=marker,scores={rtp=1..}" into tests.
function options (reader, start, text) {
  const tests = { all: [] }
  for (const option of split(text)) {
    const [, name, value] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(option) ?? [null, option, '']
    if (IGNORED.includes(name)) continue
    const negated = value.startsWith('!')
    const wanted = value.replace(/^!/, '').replace(/^"(.*)"$/, '$1')
    const test = testFor(name, wanted)
    if (name === 'limit') tests.limit = Number(wanted)
    else if (!test) throw reader.fail(start, 'argument.entity.options.unknown', name)
    else tests.all.push((entity, world) => test(entity, world) !== negated)
    if (name === 'type' && !negated) tests.type = bare(wanted)
  }
  return tests
}

function testFor (name, wanted) {
  switch (name) {
    case 'type': return entity => (entity.type ?? 'player') === bare(wanted)
    case 'tag': return entity => wanted === '' ? !entity.tags?.length : (entity.tags ?? []).includes(wanted)
    case 'name': return entity => (entity.name ?? entity.label) === wanted
    case 'scores': return scoreTest(wanted)
  }
}

function scoreTest (wanted) {
  const ranges = split(wanted.replace(/^\{(.*)\}$/, '$1')).map(entry => entry.split('=').map(part => part.trim()))
  return (entity, world) => ranges.every(([objective, range]) => {
    const value = world.scoreboard.value(objective, exports.holderName(entity))
    return value !== undefined && exports.inRange(value, range)
  })
}

// Whether a whole number is in "3", "1..", "..5" or "1..5".
exports.inRange = (value, range) => {
  const [, low, dots, high] = /^(-?\d+)?(\.\.)?(-?\d+)?$/.exec(range) ?? [null]
  if (!dots) return value === Number(low)
  return (low === undefined || value >= Number(low)) && (high === undefined || value <= Number(high))
}

const bare = id => id.replace(/^minecraft:/, '')

// Splits at commas that are in no brace.
function split (text) {
  return text === '' ? [] : text.split(/,(?![^{]*\})/)
}
