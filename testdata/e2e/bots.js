'use strict'
// Any number of players in one process (the first login of a process is slow), driven by JSON lines. README.md says which.

const flags = require('./server/flags')
const jsonlines = require('./server/jsonlines')
const { Bot } = require('./server/bot')

const options = flags.parse(process.argv.slice(2), { version: '1.21.1' })
const report = jsonlines.reporter({})
const bots = new Map()

const ORDERS = {
  connect: (bot, order) => bot.connect({ version: options.version, ...order }),
  chat_command: (bot, order) => bot.command(order.command),
  chat: (bot, order) => bot.chat(order.text),
  set: (bot, order) => bot.set(order),
  follow: (bot, order) => bot.follow(order),
  quit: bot => bot.quit()
}

jsonlines.orders(line => {
  try {
    obey(JSON.parse(line))
  } catch (err) {
    report('error', { message: `${line}: ${err.message}` })
  }
})
report('ready')

function obey ({ cmd, bot: name, ...order }) {
  if (cmd === 'exit') process.exit(0)
  if (!ORDERS[cmd]) throw new Error(`unknown cmd; known: ${Object.keys(ORDERS).join(' ')} exit`)
  if (!name) throw new Error('no bot named')
  if (!bots.has(name)) bots.set(name, new Bot(name, report))
  ORDERS[cmd](bots.get(name), order)
}

process.on('uncaughtException', err => report('error', { message: err.stack }))
process.on('SIGTERM', () => process.exit(0))
