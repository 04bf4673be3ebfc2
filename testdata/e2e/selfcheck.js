'use strict'
// node selfcheck.js VERSION: three backends, three bots, no edge. One line per check; exit status 1 if any failed.

const assert = require('assert')
const net = require('net')
const { Child } = require('./check/child')
const { RconClient } = require('./check/rconclient')
const { Texts } = require('./server/texts')

const VERSION = process.argv[2] ?? '1.21.1'
const BOTS = ['Bot0', 'Bot1', 'Bot2']

const texts = new Texts(VERSION)
const transfers = texts.has('commands.transfer.success.single')
const started = Date.now()
let failed = 0

main().then(() => process.exit(failed > 0 ? 1 : 0), err => {
  console.error(err)
  process.exit(1)
})

async function main () {
  const network = await start()
  for (const [name, check] of checks) await run(name, () => check(network))
  await Promise.all(Object.values(network).map(child => child.stop()))
  console.log(`${failed > 0 ? 'FAIL' : 'PASS'} ${VERSION}: ${checks.length - failed} of ${checks.length} checks, ${Date.now() - started} ms`)
}

async function start () {
  const network = {
    A: new Child('backend.js', '--name', 'A', '--version', VERSION),
    B: new Child('backend.js', '--name', 'B', '--version', VERSION, '--flavor', 'paper'),
    C: new Child('backend.js', '--name', 'C', '--version', VERSION, '--pp2', 'true', '--accept-transfers', 'false'),
    bots: new Child('bots.js', '--version', VERSION)
  }
  for (const name of ['A', 'B', 'C']) {
    const ready = await network[name].until('ready')
    network[name].port = ready.port
    network[name].rcon = await RconClient.connect(ready.rcon, 'pw')
    network[name].rconPort = ready.rcon
  }
  return network
}

async function run (name, check) {
  const began = Date.now()
  try {
    await check()
    console.log(`ok   ${name} (${Date.now() - began} ms)`)
  } catch (err) {
    failed++
    console.log(`FAIL ${name}: ${err.message}`)
  }
}

const checks = [
  ['all bots join', async ({ A, bots }) => {
    for (const bot of BOTS) bots.order({ cmd: 'connect', bot, host: 'play.example.test', port: A.port, dial: '127.0.0.1' })
    for (const bot of BOTS) {
      const join = await A.until('join', { name: bot })
      assert.deepStrictEqual([join.intent, join.host], [2, 'play.example.test'])
      assert.strictEqual((await bots.until('login', { bot })).uuid, join.uuid)
      await bots.until('position', { bot, x: 8.5 })
    }
  }],
  ['list names and UUIDs', async ({ A }) => {
    const { uuid } = await A.until('join', { name: 'Bot0' })
    const names = (await A.rcon.exec('list')).replace(/^.*: /, '').split(', ').sort()
    assert.deepStrictEqual(names, BOTS)
    assert.ok((await A.rcon.exec('list uuids')).includes(`Bot0 (${uuid})`))
  }],
  ['unknown command', async ({ A }) => {
    assert.strictEqual(await A.rcon.exec('tps'), texts.tr('command.unknown.command') + 'tps<--[HERE]')
  }],
  ['telemetry, both flavors', async ({ A, B }) => {
    assert.strictEqual(await A.rcon.exec('fixture:load 62.5 16'), 'ok')
    const lag = await A.rcon.exec('tick query')
    if (texts.has('commands.tick.query.rate.running')) assert.ok(lag.startsWith(texts.tr('commands.tick.status.lagging')), lag)
    assert.match(await B.rcon.exec('minecraft:list'), /^There are 0 of a max/)
    assert.match(await B.rcon.exec('tps'), /^\u00a76TPS from last 1m, 5m, 15m: \u00a7a20\.0.*\n$/)
    assert.match(await B.rcon.exec('mspt'), /^\u00a76Server tick times .*:\n\u00a76\u25f4 .*\n$/)
  }],
  ['a trigger is used once, then locked', async ({ A, bots }) => {
    await A.rcon.exec('scoreboard objectives add rtp trigger')
    const exec = line => A.rcon.exec(`scoreboard players ${line}`)
    assert.strictEqual(await say(bots, 'Bot0', 'trigger rtp'), 'You cannot trigger this objective yet')
    assert.strictEqual(await exec('enable @a rtp'), 'Enabled trigger [rtp] for 3 entities')
    assert.strictEqual(await exec('enable Bot1 rtp'), 'Nothing changed. That trigger is already enabled')
    assert.strictEqual(await say(bots, 'Bot0', 'trigger rtp'), 'Triggered [rtp]')
    assert.strictEqual(await say(bots, 'Bot1', 'trigger rtp set 7'), 'Triggered [rtp] (set value to 7)')
    assert.strictEqual(await say(bots, 'Bot0', 'trigger rtp'), 'You cannot trigger this objective yet')
    await A.until('command', { name: 'Bot1', text: 'trigger rtp set 7' })
  }],
  ['scores are read by selector and by name, and reset', async ({ A }) => {
    const exec = line => A.rcon.exec(line)
    assert.strictEqual(await exec('execute if entity @a[scores={rtp=1..}]'), texts.tr('commands.execute.conditional.pass_count', 2))
    assert.strictEqual(await exec('scoreboard players get Bot1 rtp'), 'Bot1 has 7 [rtp]')
    assert.match(await exec('scoreboard players list Bot1'), /^Bot1 has 1 score.*:\[rtp\]: 7$/)
    assert.strictEqual(await exec('scoreboard players set Bot1 rtp 0'), 'Set [rtp] for Bot1 to 0')
    assert.strictEqual(await exec('scoreboard players reset Bot0 rtp'), 'Reset [rtp] for Bot0')
    assert.strictEqual(await exec('scoreboard players get Bot0 rtp'), "Can't get value of rtp for Bot0; none is set")
    assert.strictEqual(await exec('scoreboard players enable @a[scores={rtp=1..}] rtp'), 'No entity was found')
    assert.strictEqual(await exec('scoreboard objectives add rtp trigger'), 'An objective already exists by that name')
  }],
  ['a player has no operator commands', async ({ bots }) => {
    assert.ok((await say(bots, 'Bot0', 'tp Bot0 1 2 3')).startsWith(texts.tr('command.unknown.command')))
  }],
  ['safe coordinates by a marker', async ({ A }) => {
    const nether = line => A.rcon.exec(`execute in minecraft:the_nether ${line}`)
    const [type, label] = texts.has('entity.minecraft.marker') ? ['marker', 'Marker'] : ['armor_stand', 'Armor Stand']
    const marker = `@e[type=${type},tag=lf_1,limit=1]`
    assert.strictEqual(await nether('run forceload add 100 -40'), 'Marked chunk [6, -3] in minecraft:the_nether to be force loaded')
    assert.strictEqual(await nether(`run summon ${type} 100 64 -40 {Tags:["lf_1"]}`), `Summoned new ${label}`)
    assert.match(await nether(`run spreadplayers 100 -40 0 8 under 120 false ${marker}`), /^Spread 1 .* around 100\.5, -39\.5 with/)
    const pos = /\[(.*)d, (.*)d, (.*)d\]/.exec(await A.rcon.exec(`data get entity ${marker} Pos`)).slice(1, 4).map(Number)
    const at = `positioned ${pos.join(' ')}`
    assert.strictEqual(await nether(`${at} unless block ~ ~-1 ~ minecraft:magma_block`), 'Test passed')
    await A.rcon.exec('fixture:unsafe true')
    assert.strictEqual(await nether(`${at} unless block ~ ~-1 ~ minecraft:magma_block`), 'Test failed')
    await A.rcon.exec('fixture:unsafe false')
    assert.strictEqual(await A.rcon.exec(`kill ${marker}`), `Killed ${label}`)
    assert.strictEqual(await nether('run forceload remove 100 -40'), 'Unmarked chunk [6, -3] in minecraft:the_nether for force loading')
    assert.strictEqual(await A.rcon.exec(`data get entity ${marker} Pos`), 'No entity was found')
  }],
  ['tp moves the client, data get agrees', async ({ A, bots }) => {
    const text = await A.rcon.exec('execute in minecraft:the_nether run tp Bot2 1234.5 80 -99.25')
    assert.strictEqual(text, 'Teleported Bot2 to 1234.500000, 80.000000, -99.250000')
    const { y, z } = await bots.until('position', { bot: 'Bot2', x: 1234.5 })
    assert.deepStrictEqual([y, z], [80, -99.25])
    assert.strictEqual((await A.until('tp', { name: 'Bot2' })).dim, 'minecraft:the_nether')
    assert.strictEqual(await A.rcon.exec('data get entity Bot2 Pos'), 'Bot2 has the following entity data: [1234.5d, 80.0d, -99.25d]')
    assert.match(await A.rcon.exec('data get entity Bot2 Dimension'), /: "minecraft:the_nether"$/)
    assert.strictEqual(await A.rcon.exec('data get entity Nobody Pos'), 'No entity was found')
  }],
  ['tellraw reaches the client', async ({ A, bots }) => {
    assert.strictEqual(await A.rcon.exec('tellraw Bot1 {"text":"You are moved ","color":"gold","bold":true,"extra":[{"text":"now"}]}'), '')
    await bots.until('chat', { bot: 'Bot1', text: 'You are moved now' })
    await A.until('tellraw', { name: 'Bot1', text: 'You are moved now' })
    assert.strictEqual(await A.rcon.exec('tellraw Nobody "x"'), 'No player was found')
  }],
  ['replies over 4096 characters, orders on stdin', async ({ A }) => {
    assert.strictEqual((await A.rcon.exec('fixture:long 9000')).length, 9000)
    A.order('worldborder get')
    assert.match((await A.until('console', { command: 'worldborder get' })).text, /^The world border is currently 59999968 block/)
  }],
  ['two packets in one write are hung up on', async ({ A }) => {
    const rcon = await RconClient.connect(A.rconPort, 'pw')
    rcon.socket.cork()
    const answer = rcon.exec('list')
    rcon.send(2, 'list')
    rcon.socket.uncork()
    await assert.rejects(answer, /closed/)
    await assert.rejects(RconClient.connect(A.rconPort, 'wrong'), /wrong password/)
  }],
  ['a dropped answer has taken effect', async ({ A, bots }) => {
    await A.rcon.exec('fixture:drop tp')
    const rcon = await RconClient.connect(A.rconPort, 'pw')
    await assert.rejects(rcon.exec('execute in overworld run tp Bot1 50 70 50'), /closed/)
    await bots.until('position', { bot: 'Bot1', x: 50.5 })
    assert.match(await A.rcon.exec('tp Bot1 51 70 50'), /^Teleported Bot1/)
  }],
  ['a delayed answer comes after its effect, a hung server does nothing', async ({ A, bots }) => {
    await A.rcon.exec('fixture:delay tp 300')
    const rcon = await RconClient.connect(A.rconPort, 'pw')
    const order = []
    const answer = rcon.exec('tp Bot1 60 70 60').then(() => order.push('answer'))
    await bots.until('position', { bot: 'Bot1', x: 60.5 }).then(() => order.push('effect'))
    await answer
    assert.deepStrictEqual(order, ['effect', 'answer'])
    await A.rcon.exec('fixture:delay tp 0')
    await A.rcon.exec('fixture:hang')
    const hung = rcon.exec('tp Bot1 70 70 70').then(() => order.push('hung'))
    await A.rcon.exec('fixture:border 1000')
    assert.strictEqual(order.length, 2)
    assert.ok(!A.events.some(event => event.ev === 'tp' && event.pos[0] === 70.5))
    await A.rcon.exec('fixture:hang false')
    await hung
    await bots.until('position', { bot: 'Bot1', x: 70.5 })
  }],
  ['a second login of a name ends the first', async ({ A, bots }) => {
    bots.order({ cmd: 'connect', bot: 'Copy', username: 'Bot0', host: 'play.example.test', port: A.port, dial: '127.0.0.1' })
    const { key } = await bots.until('kick', { bot: 'Bot0' })
    assert.strictEqual(key, 'multiplayer.disconnect.duplicate_login')
    await bots.until('end', { bot: 'Bot0' })
    assert.match(await A.rcon.exec('list'), /^There are 3 of/)
    const from = A.mark()
    bots.order({ cmd: 'quit', bot: 'Copy' })
    await A.until('leave', { name: 'Bot0' }, from)
    bots.order({ cmd: 'connect', bot: 'Bot0', host: 'play.example.test', port: A.port, dial: '127.0.0.1' })
    await A.until('join', { name: 'Bot0' }, from)
  }],
  ['PROXY v2 gives the address, a claimed UUID is shown', async ({ C, bots }) => {
    const claimed = '069a79f4-44e9-4726-a5be-fca90e38aaf5'
    const relay = await proxying(C.port)
    bots.order({ cmd: 'connect', bot: 'Proxied', host: 'c.example.test', port: 25565, dial: '127.0.0.1', dialPort: relay.address().port, claimed })
    const join = await C.until('join', { name: 'Proxied' })
    assert.strictEqual(join.addr, '192.0.2.7:4711')
    if (join.claimed !== undefined) assert.strictEqual(join.claimed, claimed)
    bots.order({ cmd: 'quit', bot: 'Proxied' })
    await bots.until('end', { bot: 'Proxied' })
    relay.close()
    bots.order({ cmd: 'connect', bot: 'Direct', host: 'c.example.test', port: C.port, dial: '127.0.0.1' })
    await C.until('refused', { reason: 'no PROXY v2 header' })
  }],
  transfers ? ['transfer by RCON, followed with intent 3', followed] : ['transfer is unknown', unknownTransfer],
  ...(transfers ? [['a transfer held back is followed on order', heldBack]] : []),
  ...(transfers ? [['transfers are refused where not accepted', refused]] : []),
  ['quit leaves', async ({ A, bots }) => {
    const from = A.mark()
    bots.order({ cmd: 'quit', bot: 'Bot2' })
    await A.until('leave', { name: 'Bot2' }, from)
    await bots.until('end', { bot: 'Bot2', reason: 'socketClosed' })
  }],
  ['kick shows its reason', async ({ A, bots }) => {
    assert.strictEqual(await A.rcon.exec('kick Bot1 Come back later'), 'Kicked Bot1: Come back later')
    await bots.until('kick', { bot: 'Bot1', reason: 'Come back later' })
    await bots.until('end', { bot: 'Bot1' })
  }]
]

// A relay that sends a PROXY v2 header, as an edge does.
function proxying (port) {
  const header = Buffer.from('0d0a0d0a000d0a515549540a' + '2111000c' + 'c0000207' + '7f000001' + '1267' + '63dd', 'hex')
  const relay = net.createServer(near => {
    const far = net.connect(port, '127.0.0.1')
    far.write(header)
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
  })
  return new Promise(resolve => relay.listen(0, '127.0.0.1', () => resolve(relay)))
}

// What the bot is told after a command of its own.
async function say (bots, bot, command) {
  const from = bots.mark()
  bots.order({ cmd: 'chat_command', bot, command })
  return (await bots.until('chat', { bot }, from)).text
}

async function followed ({ A, B, bots }) {
  const host = 'r-tok0.play.example.test'
  assert.strictEqual(await A.rcon.exec(`transfer ${host} ${B.port} Bot0`), `Transferring Bot0 to ${host}:${B.port}`)
  await bots.until('transfer', { bot: 'Bot0', host, port: B.port })
  const join = await B.until('join', { name: 'Bot0' })
  assert.deepStrictEqual([join.intent, join.host], [3, host])
  await A.until('leave', { name: 'Bot0' })
  assert.strictEqual((await bots.until('login', { bot: 'Bot0', intent: 3 })).host, host)
  assert.strictEqual(await A.rcon.exec(`transfer ${host} ${B.port} Bot0`), 'No player was found')
  assert.strictEqual(await A.rcon.exec(`transfer ${host} ${B.port}`), 'A player is required to run this command here')
}

async function heldBack ({ A, B, bots }) {
  bots.order({ cmd: 'set', bot: 'Bot2', follow: false })
  await A.rcon.exec('transfer elsewhere.example.test 1 Bot2')
  await bots.until('end', { bot: 'Bot2', reason: 'transfer' })
  bots.order({ cmd: 'follow', bot: 'Bot2', follow: `127.0.0.1:${B.port}` })
  const join = await B.until('join', { name: 'Bot2' })
  assert.deepStrictEqual([join.intent, join.host], [3, 'elsewhere.example.test'])
  await bots.until('login', { bot: 'Bot2', host: join.host })
  const from = A.mark()
  bots.order({ cmd: 'set', bot: 'Bot2', follow: true, followPort: A.port })
  await B.rcon.exec('transfer again.example.test 1 Bot2')
  assert.strictEqual((await A.until('join', { name: 'Bot2' }, from)).host, 'again.example.test')
}

async function refused ({ C, bots }) {
  const relay = await proxying(C.port)
  bots.order({ cmd: 'connect', bot: 'Moved', host: 'c.example.test', port: relay.address().port, dial: '127.0.0.1', intent: 3 })
  const { key } = await bots.until('disconnect', { bot: 'Moved' })
  assert.strictEqual(key, 'multiplayer.disconnect.transfers_disabled')
  await bots.until('end', { bot: 'Moved' })
  relay.close()
}

async function unknownTransfer ({ A }) {
  const line = 'transfer a.example.test 25565 Bot0'
  assert.strictEqual(await A.rcon.exec(line), `${texts.tr('command.unknown.command')}${line}<--[HERE]`)
}
