'use strict'

const { Reader, Refusal } = require('./reader')

// Commands that everybody may use; a player has no other.
const FOR_PLAYERS = ['list', 'trigger']

const COMMANDS = {
  ...require('./commands/status'),
  ...require('./commands/players'),
  ...require('./commands/places'),
  ...require('./commands/scoreboard'),
  ...require('./commands/execute'),
  ...require('./commands/fixture')
}

// Runs command lines. A command is { run(call, reader, ctx), exists?(call), bukkit? }:
//   call   { world, texts, game, faults, data, paper, say(text), dispatch(reader, ctx) }
//   ctx    { dim, pos, entity, forked }; entity is the player or summoned entity a command runs as, forked silences refusals as
//          the game does behind execute as, at, if and unless.
class Dispatcher {
  constructor (env) {
    this.env = env
  }

  // Runs one line as the console (entity null) or as a player.
  // Returns { text, ran }: the answer as RCON would give it, and the names of all commands that ran.
  run (line, player = null) {
    const messages = []
    const ran = []
    const call = {
      ...this.env,
      say: text => messages.push(text),
      dispatch: (reader, ctx) => this.dispatch(call, reader, ctx, ran, player)
    }
    const reader = new Reader(line.replace(/^\//, '').trim(), this.env.texts)
    refusable(call, false, () => call.dispatch(reader, this.context(player)))
    return { text: join(messages, ran), ran }
  }

  context (player) {
    if (player) return { dim: player.dim, pos: player.pos, entity: player, forked: false }
    return { dim: 'minecraft:overworld', pos: [0, 0, 0], entity: null, forked: false }
  }

  dispatch (call, reader, ctx, ran, player) {
    const name = call.paper ? reader.peek().replace(/^minecraft:/, '') : reader.peek()
    const command = COMMANDS[name]
    const allowed = !player || FOR_PLAYERS.includes(name)
    if (!command || !allowed || (command.exists && !command.exists(call))) throw reader.unknown()
    reader.word()
    ran.push(name)
    refusable(call, ctx.forked, () => command.run(call, reader, ctx))
  }
}

// A refusal is the answer, unless the line was forked.
function refusable (call, silent, run) {
  try {
    run()
  } catch (err) {
    if (!(err instanceof Refusal)) throw err
    if (!silent) call.say(err.message)
  }
}

// The game glues the messages of a command; those of Bukkit's own end with a line feed each.
function join (messages, ran) {
  return COMMANDS[ran[0]]?.bukkit ? messages.map(text => text + '\n').join('') : messages.join('')
}

module.exports = { Dispatcher }
