'use strict'

const net = require('net')
const mc = require('minecraft-protocol')
const minecraftData = require('minecraft-data')
const component = require('./component')
const { Texts } = require('./texts')

const INTENT_LOGIN = 2
const INTENT_TRANSFER = 3

// One player with an unmodified client's manners: says the host it was told, confirms positions, keeps cookies, and follows a
// transfer by a new connection with intent 3. The library does none of the last three.
class Bot {
  // report(ev, fields) is told of everything that happens.
  constructor (name, report) {
    this.name = name
    this.report = (ev, fields) => report(ev, { bot: name, ...fields })
    this.client = null
    this.transferred = null // { host, port } of a transfer that was not followed yet
  }

  // options: host, port, version, dial (address to dial in place of host), dialPort, from (own address of this machine), intent,
  // claimed (UUID), username (else the bot's name), again (ms after which it dials anew when it lost its connection), and what
  // set() takes.
  connect (options) {
    if (this.client) throw new Error(`${this.name} is connected already`)
    this.options = { follow: true, ...options }
    this.texts = new Texts(options.version)
    this.start()
  }

  // Dials what connect() named.
  start () {
    const options = this.options
    this.cookies = new Map()
    this.open({ host: options.host, port: options.port, intent: options.intent ?? INTENT_LOGIN, via: endpoint(options, options.port) })
  }

  // Changes how the next transfer is followed: { follow: true | false | "HOST:PORT", followPort }.
  set (options) {
    this.options = { ...this.options, ...options }
  }

  // Follows the last transfer now, if it was held back by follow: false; over the given endpoint if there is one.
  follow (options = {}) {
    if (this.client) throw new Error(`${this.name} is connected`)
    if (!this.transferred) throw new Error(`${this.name} has no transfer to follow`)
    this.open({ ...this.transferred, intent: INTENT_TRANSFER, via: this.endpointAfterTransfer({ ...this.options, follow: true, ...options }) })
  }

  // Says a command, without the slash.
  command (line) {
    this.playing().chat('/' + line)
  }

  chat (text) {
    this.playing().chat(text)
  }

  quit () {
    this.options = { ...this.options, again: 0 }
    if (this.client) this.client.end()
  }

  playing () {
    if (!this.client?.chat) throw new Error(`${this.name} is not in play`)
    return this.client
  }

  open ({ host, port, intent, via }) {
    const started = Date.now()
    const client = mc.createClient({
      host: via.host,
      port: via.port,
      connect: self => self.setSocket(net.connect({ port: via.port, host: via.host, localAddress: this.options.from })), // never a look-up of SRV records
      fakeHost: host,
      username: this.options.username ?? this.name,
      version: this.options.version,
      auth: 'offline',
      hideErrors: true,
      validateChannelProtocol: false // costs 0.5 s CPU for each connection
    })
    this.client = client
    this.leaving = null
    this.write = rewriteLogin(client, { nextState: intent, serverPort: port }, this.options.claimed)
    client.on('login', () => this.report('login', { host, port, via: via.port, intent, uuid: client.uuid, ms: Date.now() - started }))
    client.on('error', err => this.report('error', { message: err.message }))
    client.on('end', reason => this.onEnd(client, reason))
    this.listenToGame(client)
    this.listenToTransfers(client)
  }

  listenToGame (client) {
    const data = minecraftData(this.options.version)
    client.on('position', packet => {
      if (packet.teleportId !== undefined) client.write('teleport_confirm', { teleportId: packet.teleportId })
      this.report('position', { x: packet.x, y: packet.y, z: packet.z })
    })
    const asText = value => component.toText(value, this.texts)
    client.on('system_chat', packet => this.report('chat', { text: asText(packet.content) }))
    if (!data.isNewerOrEqualTo('1.19')) client.on('chat', packet => this.report('chat', { text: asText(packet.message) }))
    const refused = ev => packet => this.report(ev, { reason: asText(packet.reason), key: component.key(packet.reason) })
    client.on('disconnect', refused('disconnect'))
    client.on('kick_disconnect', refused('kick'))
  }

  listenToTransfers (client) {
    client.on('store_cookie', packet => this.cookies.set(packet.key, packet.value))
    client.on('cookie_request', packet => this.write('cookie_response', { key: packet.cookie, value: this.cookies.get(packet.cookie) }))
    client.on('transfer', packet => {
      this.transferred = { host: packet.host, port: packet.port }
      this.leaving = 'transfer'
      this.report('transfer', this.transferred)
      client.end()
    })
  }

  onEnd (client, reason) {
    if (this.client !== client) return
    this.client = null
    if (this.leaving === 'transfer' && this.options.follow !== false) return this.follow(this.options)
    this.report('end', { reason: this.leaving ?? reason })
    if (this.leaving !== 'transfer' && this.options.again) setTimeout(() => this.client || this.start(), this.options.again)
  }

  // Where to dial after a transfer: an explicit HOST:PORT, the transfer's host at another port, or the transfer's own address.
  endpointAfterTransfer ({ follow, followPort }) {
    if (typeof follow === 'string') {
      const colon = follow.lastIndexOf(':')
      return { host: follow.slice(0, colon), port: Number(follow.slice(colon + 1)) }
    }
    return { host: this.options.dial ?? this.transferred.host, port: followPort ?? this.transferred.port }
  }
}

const endpoint = (options, port) => ({ host: options.dial ?? options.host, port: options.dialPort ?? port })

// The library always says intent 2, the port it dials and the name's own UUID. Returns the untouched write function.
function rewriteLogin (client, handshake, claimed) {
  const write = client.write.bind(client)
  client.write = (name, packet) => {
    if (name === 'set_protocol') return write(name, { ...packet, ...handshake })
    if (name === 'login_start' && claimed) return write(name, { ...packet, playerUUID: claimed })
    return write(name, packet)
  }
  return write
}

module.exports = { Bot }
