'use strict'

const mc = require('minecraft-protocol')
const component = require('./component')
const proxyv2 = require('./proxyv2')

const HANDSHAKE_TRANSFER = 3
const LOGIN_BEFORE_1_16 = { dimension: 0, difficulty: 1, levelType: 'default' } // minecraft-data has no sample of those
const SPAWN = [8.5, 70, 8.5]

// The game port: real login, configuration and play of one version, without chunks. Keeps world.players, and reports what players do.
class Game {
  // options: version, host, port, name, max, acceptTransfers, pp2; data is minecraft-data of the version; report(ev, fields);
  // onCommand(player, line) runs a player's command.
  constructor ({ options, data, texts, world, report, onCommand }) {
    Object.assign(this, { options, data, texts, world, report, onCommand })
    this.max = options.max
    this.nextTeleport = 1
    this.nbtText = data.supportFeature('chatPacketsUseNbtComponents')
    this.server = mc.createServer({
      host: options.host,
      port: options.port,
      version: options.version,
      'online-mode': false,
      motd: options.name,
      maxPlayers: options.max,
      hideErrors: true,
      validateChannelProtocol: false // costs 0.5 s CPU for each connection
    })
    if (options.pp2) proxyv2.require(this.server.socketServer, reason => report('refused', { reason }))
    this.server.on('connection', client => this.onConnection(client))
    this.server.on('playerJoin', client => this.onJoin(client))
  }

  // Resolves to the port when the game listens.
  listening () {
    return new Promise((resolve, reject) => {
      this.server.on('listening', () => resolve(this.server.socketServer.address().port))
      this.server.on('error', reject)
    })
  }

  onConnection (client) {
    client.on('error', err => { if (err.field) this.report('error', { message: err.message }) }) // a lost connection is no error
    client.on('set_protocol', packet => this.onHandshake(client, packet))
    client.on('login_start', packet => { client.claimed = packet.playerUUID })
  }

  // The library knows the intents 1 and 2 only.
  onHandshake (client, packet) {
    client.handshake = packet
    if (packet.nextState !== HANDSHAKE_TRANSFER) return
    if (!this.texts.has('commands.transfer.success.single')) return client.socket.destroy() // before 1.20.5
    client.state = mc.states.LOGIN
    if (this.options.acceptTransfers) return
    this.report('refused', { reason: 'transfers_disabled', host: packet.serverHost })
    client.end('', JSON.stringify({ translate: 'multiplayer.disconnect.transfers_disabled' }))
  }

  onJoin (client) {
    const player = { name: client.username, uuid: client.uuid, pos: SPAWN, dim: 'minecraft:overworld', client }
    const older = this.world.players.get(player.name)
    if (older) this.kick(older, { translate: 'multiplayer.disconnect.duplicate_login' })
    this.world.players.delete(player.name)
    this.world.players.set(player.name, player)
    client.on('end', () => this.onLeave(player))
    this.listen(player)
    this.greet(player)
    this.report('join', {
      name: player.name,
      uuid: player.uuid,
      claimed: client.claimed,
      intent: client.handshake.nextState,
      host: client.handshake.serverHost,
      proto: client.handshake.protocolVersion,
      addr: client.socket.proxiedAddress ?? `${client.socket.remoteAddress}:${client.socket.remotePort}`
    })
  }

  onLeave (player) {
    if (this.world.players.get(player.name) === player) this.world.players.delete(player.name)
    this.report('leave', { name: player.name })
  }

  greet (player) {
    player.client.write('login', {
      ...LOGIN_BEFORE_1_16,
      ...this.data.loginPacket,
      entityId: player.client.id + 1,
      isHardcore: false,
      gameMode: 1,
      previousGameMode: 1,
      hashedSeed: [0, 0],
      maxPlayers: this.max,
      viewDistance: 2,
      reducedDebugInfo: false,
      enableRespawnScreen: true,
      isDebug: false,
      isFlat: true,
      enforcesSecureChat: false
    })
    this.sendPosition(player)
    player.client.write('update_health', { health: 20, food: 20, foodSaturation: 5 })
  }

  // Commands come as their own packets from 1.19, as chat with a slash before.
  listen (player) {
    const command = packet => this.onPlayerCommand(player, packet.command)
    const chat = packet => {
      if (packet.message.startsWith('/')) this.onPlayerCommand(player, packet.message.slice(1))
      else this.report('say', { name: player.name, text: packet.message })
    }
    player.client.on('chat_command', command)
    player.client.on('chat_command_signed', command)
    player.client.on('chat_message', chat)
    player.client.on('chat', chat)
  }

  onPlayerCommand (player, line) {
    this.report('command', { name: player.name, text: line })
    this.onCommand(player, line)
  }

  // After player.pos or player.dim changed by a command.
  moved (player) {
    this.sendPosition(player)
    this.report('tp', { name: player.name, pos: player.pos, dim: player.dim })
  }

  sendPosition (player) {
    const [x, y, z] = player.pos
    const teleportId = this.nextTeleport++
    player.client.write('position', { x, y, z, dx: 0, dy: 0, dz: 0, yaw: 0, pitch: 0, flags: 0, teleportId, dismountVehicle: false })
  }

  transfer (player, host, port) {
    player.client.write('transfer', { host, port })
    this.report('transfer', { name: player.name, host, port })
  }

  // Shows a chat component to a player.
  message (player, text) {
    const content = component.toPacket(text, this.nbtText)
    if (this.data.isNewerOrEqualTo('1.19')) player.client.write('system_chat', { content, type: 1, isActionBar: false })
    else player.client.write('chat', { message: content, position: 1, sender: '00000000-0000-0000-0000-000000000000' })
  }

  kick (player, reason) {
    player.client.end(this.plain(reason), component.toPacket(reason, this.nbtText))
  }

  plain (text) {
    return component.toText(text, this.texts)
  }
}

module.exports = { Game }
