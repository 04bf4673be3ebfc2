'use strict'
// What the server says about itself.

const { Refusal } = require('../reader')

const isPaper = call => call.paper

exports.list = {
  run (call, reader) {
    const withUuids = !reader.done && reader.choice('uuids') !== ''
    const players = [...call.world.players.values()]
    const names = players.map(player => withUuids ? call.texts.tr('commands.list.nameAndId', player.name, player.uuid) : player.name)
    call.say(call.texts.tr('commands.list.players', names.length, call.game.max, names.join(', ')))
  }
}

exports.tps = {
  exists: isPaper,
  bukkit: true,
  run (call) {
    const { tps } = call.world.load
    const colour = tps > 18 ? '\u00a7a' : tps > 16 ? '\u00a7e' : '\u00a7c'
    const shown = colour + (tps > 20 ? '*20.0' : tps.toFixed(1))
    call.say(`\u00a76TPS from last 1m, 5m, 15m: ${shown}\u00a7r, ${shown}\u00a7r, \u00a7a20.0`)
  }
}

exports.mspt = {
  exists: isPaper,
  bukkit: true,
  run (call) {
    const { mspt } = call.world.load
    const triple = [mspt, mspt / 2, mspt * 3].map(ms => `\u00a7a${ms.toFixed(1)}`).join('\u00a77/')
    call.say('\u00a76Server tick times \u00a7e(\u00a77avg\u00a7e/\u00a77min\u00a7e/\u00a77max\u00a7e)\u00a76 from last 5s\u00a77,\u00a76 10s\u00a77,\u00a76 1m\u00a7e:')
    call.say(`\u00a76\u25f4 ${triple}\u00a7e, ${triple}\u00a7e, ${triple}`)
  }
}

exports.tick = {
  exists: call => call.texts.has('commands.tick.query.rate.running'), // from 1.20.3
  run (call, reader) {
    reader.choice('query')
    const { mspt } = call.world.load
    const ms = factor => (mspt * factor).toFixed(1)
    call.say(call.texts.tr(`commands.tick.status.${mspt > 50 ? 'lagging' : 'running'}`))
    call.say(call.texts.tr('commands.tick.query.rate.running', '20.0', ms(1), '50.0'))
    call.say(call.texts.tr('commands.tick.query.percentiles', ms(1), ms(1.5), ms(2), 100))
  }
}

exports.worldborder = {
  run (call, reader) {
    reader.choice('get')
    call.say(call.texts.tr('commands.worldborder.get', call.world.borderWidth))
  }
}

exports.say = {
  run (call, reader, ctx) {
    if (reader.done) throw reader.unknown()
    const name = ctx.entity ? ctx.entity.name ?? ctx.entity.label : 'Rcon'
    const text = reader.rest()
    call.game.report('say', { name, text })
    for (const player of call.world.players.values()) {
      call.game.message(player, { translate: 'chat.type.announcement', with: [name, text] })
    }
  }
}

exports['save-all'] = {
  run (call) {
    if (!call.texts.has('commands.save.saving')) throw new Refusal('')
    call.say(call.texts.tr('commands.save.saving'))
    call.say(call.texts.tr('commands.save.success'))
  }
}
