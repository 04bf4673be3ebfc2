'use strict'
// A Minecraft server that is true in protocol and in RCON, and can be told to misbehave. README.md says what it prints and takes.

const minecraftData = require('minecraft-data')
const flags = require('./server/flags')
const jsonlines = require('./server/jsonlines')
const rcon = require('./server/rcon')
const { Dispatcher } = require('./server/dispatcher')
const { Faults } = require('./server/faults')
const { Game } = require('./server/game')
const { Texts } = require('./server/texts')
const { World } = require('./server/world')

const HOST = '127.0.0.1'

const options = flags.parse(process.argv.slice(2), {
  name: 'A',
  version: '1.21.1',
  port: 0,
  rcon: 0,
  password: 'pw',
  flavor: 'vanilla',
  'accept-transfers': true,
  pp2: false,
  max: 20
})
const report = jsonlines.reporter({ server: options.name })

main().catch(err => {
  report('error', { message: err.message })
  process.exit(1)
})

async function main () {
  const started = Date.now()
  const data = minecraftData(options.version)
  if (!data) throw new Error(`version ${options.version} is not in minecraft-data ${require('minecraft-data/package.json').version}`)
  const { game, execute } = build(data)
  const rconServer = rcon.serve({ port: options.rcon, host: HOST, password: options.password, exec: execute })
  const [port, rconPort] = await Promise.all([game.listening(), listening(rconServer)])
  jsonlines.orders(async line => report('console', { command: line, text: (await execute(line)).text }))
  report('ready', { port, rcon: rconPort, ms: Date.now() - started, rss: process.memoryUsage().rss >> 20 })
}

function build (data) {
  const world = new World()
  const texts = new Texts(options.version)
  const faults = new Faults()
  const game = new Game({
    options: { ...options, host: HOST, acceptTransfers: options['accept-transfers'] },
    data,
    texts,
    world,
    report,
    onCommand: (player, line) => {
      const { text } = dispatcher.run(line, player)
      if (text !== '') game.message(player, { text })
    }
  })
  const dispatcher = new Dispatcher({ world, texts, game, faults, data, paper: options.flavor === 'paper' })
  return { game, execute: line => execute(dispatcher, faults, line) }
}

// A line from RCON or from stdin: it takes effect at once, its answer suffers the faults that were ordered.
async function execute (dispatcher, faults, line) {
  const order = line.startsWith('fixture:')
  if (!order) await faults.beforeCommand()
  const { text, ran } = dispatcher.run(line)
  if (!order && await faults.beforeAnswer(ran)) return { text, drop: true }
  return { text }
}

function listening (server) {
  return new Promise((resolve, reject) => {
    server.on('listening', () => resolve(server.address().port))
    server.on('error', reject)
  })
}

// A broken client must not end the server.
process.on('uncaughtException', err => report('error', { message: err.stack }))
process.on('SIGTERM', () => process.exit(0))
