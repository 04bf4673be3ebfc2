'use strict'
// Chunks, entities and where they are.

const { chunk } = require('../world')
const { Refusal } = require('../reader')
const { fixed6, javaDouble, javaFloat } = require('../texts')
const position = require('../position')
const selector = require('../selector')

const MAX_FORCED_AT_ONCE = 256
const FARTHEST = 3e7

const label = entity => entity.name ?? entity.label

exports.forceload = {
  run (call, reader, ctx) {
    const order = reader.choice('add', 'remove', 'query')
    if (order === 'query') return queryForced(call, reader, ctx)
    if (order === 'remove' && reader.peek() === 'all') {
      call.world.forced.get(ctx.dim).clear()
      return call.say(call.texts.tr('commands.forceload.removed.all', ctx.dim))
    }
    const from = position.blockColumn(reader, ctx)
    changeForced(call, order, from, reader.done ? from : position.blockColumn(reader, ctx), ctx.dim)
  }
}

const chunkName = ([x, z]) => `[${x}, ${z}]`

function queryForced (call, reader, ctx) {
  const forced = call.world.forced.get(ctx.dim)
  if (!reader.done) {
    const at = position.blockColumn(reader, ctx).map(chunk)
    const key = forced.has(at.join(' ')) ? 'commands.forceload.query.success' : 'commands.forceload.query.failure'
    return call.say(call.texts.tr(key, chunkName(at), ctx.dim))
  }
  const names = [...forced.values()].map(chunkName)
  if (names.length === 0) call.say(call.texts.tr('commands.forceload.added.none', ctx.dim))
  else if (names.length === 1) call.say(call.texts.tr('commands.forceload.list.single', ctx.dim, names[0]))
  else call.say(call.texts.tr('commands.forceload.list.multiple', names.length, ctx.dim, names.join(', ')))
}

function changeForced (call, order, from, to, dim) {
  const verb = order === 'add' ? 'added' : 'removed'
  const changed = chunksBetween(call, from, to).filter(at => setForced(call.world.forced.get(dim), order, at))
  if (changed.length === 0) throw new Refusal(call.texts.tr(`commands.forceload.${verb}.failure`))
  if (changed.length === 1) return call.say(call.texts.tr(`commands.forceload.${verb}.single`, chunkName(changed[0]), dim))
  const [low, high] = [from.map(chunk), to.map(chunk)]
  call.say(call.texts.tr(`commands.forceload.${verb}.multiple`, changed.length, dim, chunkName(low), chunkName(high)))
}

function chunksBetween (call, from, to) {
  const range = axis => [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])].map(chunk)
  const [[x0, x1], [z0, z1]] = [range(0), range(1)]
  const count = (x1 - x0 + 1) * (z1 - z0 + 1)
  if (count > MAX_FORCED_AT_ONCE) throw new Refusal(call.texts.tr('commands.forceload.toobig', MAX_FORCED_AT_ONCE, count))
  const chunks = []
  for (let x = x0; x <= x1; x++) for (let z = z0; z <= z1; z++) chunks.push([x, z])
  return chunks
}

function setForced (forced, order, at) {
  const key = at.join(' ')
  if (order === 'remove') return forced.delete(key)
  if (forced.has(key)) return false
  forced.set(key, at)
  return true
}

exports.summon = {
  run (call, reader, ctx) {
    const start = reader.pos
    const type = reader.word().replace(/^minecraft:/, '')
    const key = `entity.minecraft.${type}`
    if (!call.texts.has(key)) throw unknownEntity(call, reader, start, type) // markers are there from 1.17
    const pos = reader.done ? ctx.pos : position.place(reader, ctx)
    const tags = /Tags:\s*\[([^\]]*)\]/.exec(reader.rest())?.[1].split(',').map(tag => tag.trim().replace(/^"(.*)"$/, '$1'))
    call.world.summon(type, call.texts.tr(key), tags ?? [], pos, ctx.dim)
    call.say(call.texts.tr('commands.summon.success', call.texts.tr(key)))
  }
}

function unknownEntity (call, reader, start, type) {
  if (call.texts.has('entity.notFound')) return reader.fail(start, 'entity.notFound', `minecraft:${type}`)
  return reader.fail(start, 'argument.resource.not_found', `minecraft:${type}`, 'minecraft:entity_type')
}

exports.kill = {
  run (call, reader, ctx) {
    const targets = selector.entities(call, reader, ctx)
    for (const entity of targets) call.world.kill(entity)
    if (targets.length === 1) call.say(call.texts.tr('commands.kill.success.single', label(targets[0])))
    else call.say(call.texts.tr('commands.kill.success.multiple', targets.length))
  }
}

exports.spreadplayers = {
  run (call, reader, ctx) {
    const centre = position.column(reader, ctx)
    reader.number() // distance between the targets: they are never in each other's way here
    const range = reader.number()
    const under = reader.peek() === 'under' ? reader.word() && reader.integer() : Infinity
    reader.choice('true', 'false')
    const targets = selector.entities(call, reader, ctx)
    const [x, z] = centre.map(javaFloat)
    if (Math.max(...centre.map(Math.abs)) >= call.world.oceanFrom) {
      throw new Refusal(call.texts.tr('commands.spreadplayers.failed.entities', targets.length, x, z, '0.00'))
    }
    for (const entity of targets) move(call, entity, somewhere(call.world, centre, range, under), ctx.dim)
    call.say(call.texts.tr('commands.spreadplayers.success.entities', targets.length, x, z, '0.00'))
  }
}

function somewhere (world, centre, range, under) {
  const [x, z] = centre.map(middle => Math.floor(middle + (Math.random() * 2 - 1) * range) + 0.5)
  return [x, Math.min(world.surface(x, z), under), z]
}

function move (call, entity, pos, dim) {
  entity.pos = pos
  entity.dim = dim
  if (entity.client) call.game.moved(entity)
}

exports.tp = {
  run (call, reader, ctx) {
    const targets = selector.entities(call, reader, ctx)
    const pos = position.place(reader, ctx)
    if (Math.abs(pos[0]) > FARTHEST || Math.abs(pos[2]) > FARTHEST) throw new Refusal(call.texts.tr('commands.teleport.invalidPosition'))
    for (const entity of targets) move(call, entity, pos, ctx.dim)
    const shown = pos.map(fixed6)
    if (targets.length === 1) call.say(call.texts.tr('commands.teleport.success.location.single', label(targets[0]), ...shown))
    else call.say(call.texts.tr('commands.teleport.success.location.multiple', targets.length, ...shown))
  }
}
exports.teleport = exports.tp

exports.data = {
  run (call, reader, ctx) {
    reader.choice('get')
    reader.choice('entity')
    const entity = selector.entity(call, reader, ctx)
    const fields = nbtOf(entity)
    const path = reader.done ? null : reader.word()
    if (path !== null && !(path in fields)) throw new Refusal(call.texts.tr('arguments.nbtpath.nothing_found', path))
    const shown = path === null ? `{${Object.entries(fields).map(([name, value]) => `${name}: ${value}`).join(', ')}}` : fields[path]
    call.say(call.texts.tr('commands.data.entity.query', label(entity), shown))
  }
}

// The entity's data in the game's notation.
function nbtOf (entity) {
  const words = entity.uuid.replace(/-/g, '').match(/.{8}/g).map(word => parseInt(word, 16) | 0)
  const all = {
    Pos: `[${entity.pos.map(value => javaDouble(value) + 'd').join(', ')}]`,
    Rotation: '[0.0f, 0.0f]',
    OnGround: '1b',
    UUID: `[I; ${words.join(', ')}]`
  }
  if (!entity.client) return { ...all, Tags: `[${entity.tags.map(tag => `"${tag}"`).join(', ')}]` }
  return { ...all, Dimension: `"${entity.dim}"`, Health: '20.0f', playerGameType: '1' }
}
