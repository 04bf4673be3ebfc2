'use strict'
// What is done to players.

const { Refusal } = require('../reader')
const selector = require('../selector')

exports.transfer = {
  exists: call => call.texts.has('commands.transfer.success.single'), // from 1.20.5
  run (call, reader, ctx) {
    const host = reader.word()
    const port = reader.done ? 25565 : reader.integer()
    const targets = reader.done ? self(call, ctx) : selector.players(call, reader, ctx)
    reader.end()
    for (const player of targets) call.game.transfer(player, host, port)
    if (targets.length === 1) call.say(call.texts.tr('commands.transfer.success.single', targets[0].name, host, port))
    else call.say(call.texts.tr('commands.transfer.success.multiple', targets.length, host, port))
  }
}

exports.tellraw = {
  run (call, reader, ctx) {
    const targets = selector.players(call, reader, ctx)
    const start = reader.pos
    const component = parse(reader, start)
    for (const player of targets) {
      call.game.report('tellraw', { name: player.name, text: call.game.plain(component) })
      call.game.message(player, component)
    }
  }
}

exports.kick = {
  run (call, reader, ctx) {
    const targets = selector.players(call, reader, ctx)
    const reason = reader.done ? call.texts.tr('multiplayer.disconnect.kicked') : reader.rest()
    for (const player of targets) {
      call.game.kick(player, { text: reason })
      call.say(call.texts.tr('commands.kick.success', player.name, reason))
    }
  }
}

function self (call, ctx) {
  if (!ctx.entity?.client) throw new Refusal(call.texts.tr('permissions.requires.player'))
  return [ctx.entity]
}

function parse (reader, start) {
  if (reader.done) throw reader.unknown()
  const text = reader.rest()
  try {
    return JSON.parse(text)
  } catch (err) {
    throw reader.fail(start, 'argument.component.invalid', err.message)
  }
}
