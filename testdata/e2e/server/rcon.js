'use strict'
// An RCON server with the vanilla server's habits, so that a client which relies on more is found out:
//  - one read holds exactly one packet of at most 1460 bytes, anything else is hung up on;
//  - nothing is read while a command runs;
//  - a reply is cut every 4096 UTF-16 units, every piece under the request's id; an empty reply is one empty packet;
//  - a refused password is answered with id -1; an unknown type with "Unknown request <hex>".

const net = require('net')

const TYPE_RESPONSE = 0
const TYPE_COMMAND = 2 // also the type of the answer to a login
const TYPE_LOGIN = 3
const PIECE = 4096

// exec(line) resolves to { text } or to { drop: true }, which closes the connection without an answer.
// Returns the listening net.Server; port 0 picks one.
exports.serve = ({ port, host, password, exec }) => {
  return net.createServer(socket => new Connection(socket, password, exec)).listen(port, host)
}

class Connection {
  constructor (socket, password, exec) {
    this.socket = socket
    this.password = password
    this.exec = exec
    this.loggedIn = false
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', data => this.onRead(data))
  }

  async onRead (data) {
    const packet = decode(data)
    if (!packet) return this.socket.destroy()
    this.socket.pause()
    await this.answer(packet)
    this.socket.resume()
  }

  async answer ({ id, type, body }) {
    if (type === TYPE_LOGIN) {
      this.loggedIn = body !== '' && body === this.password
      return this.send(this.loggedIn ? id : -1, TYPE_COMMAND, '')
    }
    if (type !== TYPE_COMMAND) return this.reply(id, `Unknown request ${(type >>> 0).toString(16)}`)
    if (!this.loggedIn) return this.send(-1, TYPE_COMMAND, '')
    const result = await this.exec(body).catch(err => ({ text: `Error executing: ${body} (${err.message})` }))
    if (result.drop) return this.socket.destroy()
    this.reply(id, result.text)
  }

  reply (id, text) {
    do {
      this.send(id, TYPE_RESPONSE, text.slice(0, PIECE))
      text = text.slice(PIECE)
    } while (text.length > 0)
  }

  send (id, type, body) {
    if (!this.socket.destroyed) this.socket.write(encode(id, type, body))
  }
}

function decode (data) {
  if (data.length < 10 || data.length > 1460 || data.readInt32LE(0) !== data.length - 4) return null
  const end = data.indexOf(0, 12)
  return { id: data.readInt32LE(4), type: data.readInt32LE(8), body: data.toString('utf8', 12, end < 0 ? data.length : end) }
}

function encode (id, type, body) {
  const text = Buffer.from(body, 'utf8')
  const packet = Buffer.alloc(14 + text.length)
  packet.writeInt32LE(10 + text.length, 0)
  packet.writeInt32LE(id, 4)
  packet.writeInt32LE(type, 8)
  text.copy(packet, 12)
  return packet
}
