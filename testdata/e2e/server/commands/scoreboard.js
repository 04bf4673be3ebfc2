'use strict'
// scoreboard objectives|players, and the trigger command a player may use without any right.

const { Refusal } = require('../reader')
const selector = require('../selector')

const shown = objective => `[${objective.name}]`

exports.scoreboard = {
  run (call, reader, ctx) {
    const part = reader.choice('objectives', 'players')
    const orders = part === 'objectives' ? OBJECTIVES : PLAYERS
    orders[reader.choice(...Object.keys(orders))](call, reader, ctx)
  }
}

const OBJECTIVES = {
  add (call, reader) {
    const name = reader.word()
    const criteria = reader.word()
    if (call.world.scoreboard.objectives.has(name)) throw refusal(call, 'commands.scoreboard.objectives.add.duplicate')
    call.world.scoreboard.add(name, criteria)
    call.say(call.texts.tr('commands.scoreboard.objectives.add.success', `[${name}]`))
  },
  remove (call, reader) {
    const objective = readObjective(call, reader)
    call.world.scoreboard.objectives.delete(objective.name)
    call.say(call.texts.tr('commands.scoreboard.objectives.remove.success', shown(objective)))
  },
  list (call) {
    const names = [...call.world.scoreboard.objectives.values()].map(shown)
    if (names.length === 0) return call.say(call.texts.tr('commands.scoreboard.objectives.list.empty'))
    call.say(call.texts.tr('commands.scoreboard.objectives.list.success', names.length, names.join(', ')))
  }
}

const PLAYERS = {
  enable (call, reader, ctx) {
    const holders = selector.holders(call, reader, ctx)
    const objective = readObjective(call, reader)
    if (objective.criteria !== 'trigger') throw refusal(call, 'commands.scoreboard.players.enable.invalid')
    const opened = holders.map(holder => call.world.scoreboard.ensure(objective, holder)).filter(score => score.locked)
    if (opened.length === 0) throw refusal(call, 'commands.scoreboard.players.enable.failed')
    for (const score of opened) score.locked = false
    say(call, 'enable.success', holders, [shown(objective)], [])
  },
  get (call, reader, ctx) {
    const [holder] = selector.holders(call, reader, ctx)
    const objective = readObjective(call, reader)
    const score = objective.scores.get(holder)
    if (!score) throw refusal(call, 'commands.scoreboard.players.get.null', objective.name, holder)
    call.say(call.texts.tr('commands.scoreboard.players.get.success', holder, score.value, shown(objective)))
  },
  set (call, reader, ctx) {
    const holders = selector.holders(call, reader, ctx)
    const objective = readObjective(call, reader)
    const value = reader.integer()
    for (const holder of holders) call.world.scoreboard.ensure(objective, holder).value = value
    say(call, 'set.success', holders, [shown(objective)], [value])
  },
  add: (call, reader, ctx) => change(call, reader, ctx, 'add', 1),
  remove: (call, reader, ctx) => change(call, reader, ctx, 'remove', -1),
  reset (call, reader, ctx) {
    const holders = selector.holders(call, reader, ctx)
    const objective = reader.done ? null : readObjective(call, reader)
    for (const holder of holders) call.world.scoreboard.reset(holder, objective)
    if (objective) say(call, 'reset.specific', holders, [shown(objective)], [])
    else say(call, 'reset.all', holders, [], [])
  },
  list (call, reader, ctx) {
    if (reader.done) return listTracked(call)
    const [holder] = selector.holders(call, reader, ctx)
    const scores = call.world.scoreboard.scoresOf(holder)
    if (scores.length === 0) return call.say(call.texts.tr('commands.scoreboard.players.list.entity.empty', holder))
    call.say(call.texts.tr('commands.scoreboard.players.list.entity.success', holder, scores.length))
    for (const [objective, value] of scores) {
      call.say(call.texts.tr('commands.scoreboard.players.list.entity.entry', shown(objective), value))
    }
  }
}

function change (call, reader, ctx, verb, sign) {
  const holders = selector.holders(call, reader, ctx)
  const objective = readObjective(call, reader)
  const by = reader.integer()
  const scores = holders.map(holder => call.world.scoreboard.ensure(objective, holder))
  for (const score of scores) score.value += sign * by
  const place = `commands.scoreboard.players.${verb}.success`
  if (holders.length === 1) return call.say(call.texts.tr(`${place}.single`, by, shown(objective), holders[0], scores[0].value))
  call.say(call.texts.tr(`${place}.multiple`, by, shown(objective), holders.length))
}

function listTracked (call) {
  const tracked = call.world.scoreboard.tracked()
  if (tracked.length === 0) return call.say(call.texts.tr('commands.scoreboard.players.list.empty'))
  call.say(call.texts.tr('commands.scoreboard.players.list.success', tracked.length, tracked.join(', ')))
}

// The text of a change, for one holder by name or for several by number.
function say (call, key, holders, before, after) {
  const [form, who] = holders.length === 1 ? ['single', holders[0]] : ['multiple', holders.length]
  call.say(call.texts.tr(`commands.scoreboard.players.${key}.${form}`, ...before, who, ...after))
}

function readObjective (call, reader) {
  const name = reader.word()
  const objective = call.world.scoreboard.objectives.get(name)
  if (!objective) throw refusal(call, 'arguments.objective.notFound', name)
  return objective
}

const refusal = (call, key, ...args) => new Refusal(call.texts.tr(key, ...args))

exports.trigger = {
  run (call, reader, ctx) {
    if (!ctx.entity?.client) throw refusal(call, 'permissions.requires.player')
    const objective = readObjective(call, reader)
    const verb = reader.done ? 'simple' : reader.choice('add', 'set')
    const by = verb === 'simple' ? 1 : reader.integer()
    const score = primed(call, objective, ctx.entity.name)
    score.locked = true
    score.value = verb === 'set' ? by : score.value + by
    call.say(call.texts.tr(`commands.trigger.${verb}.success`, shown(objective), by))
  }
}

function primed (call, objective, holder) {
  if (objective.criteria !== 'trigger') throw refusal(call, 'commands.trigger.failed.invalid')
  const score = objective.scores.get(holder)
  if (!score || score.locked) throw refusal(call, 'commands.trigger.failed.unprimed')
  return score
}
