'use strict'

const net = require('net')

// Just enough of an RCON client to check the server: one request at a time, replies of any length.
class RconClient {
  static async connect (port, password) {
    const client = new RconClient(net.connect(port, '127.0.0.1'))
    const answer = await client.request(3, password)
    if (answer.id === -1) throw new Error('wrong password')
    return client
  }

  constructor (socket) {
    this.socket = socket
    this.nextId = 1
    this.seen = Buffer.alloc(0)
    this.pending = null
    socket.on('data', data => this.onData(data))
    socket.on('error', () => {})
    socket.on('close', () => this.settle('reject', new Error('connection closed')))
  }

  async exec (line) {
    return (await this.request(2, line)).text
  }

  request (type, body) {
    return new Promise((resolve, reject) => {
      this.pending = { resolve, reject, text: '' }
      this.send(type, body)
    })
  }

  send (type, body) {
    this.socket.write(encode(this.nextId++, type, body))
  }

  onData (data) {
    this.seen = Buffer.concat([this.seen, data])
    while (this.seen.length >= 4 && this.seen.length >= 4 + this.seen.readInt32LE(0)) {
      const length = 4 + this.seen.readInt32LE(0)
      this.onPacket(this.seen.readInt32LE(4), this.seen.toString('utf8', 12, length - 2))
      this.seen = this.seen.subarray(length)
    }
  }

  // A full piece may be followed by another one.
  onPacket (id, piece) {
    this.pending.text += piece
    if (piece.length < 4096) this.settle('resolve', { id, text: this.pending.text })
  }

  settle (how, value) {
    const pending = this.pending
    this.pending = null
    pending?.[how](value)
  }

  close () {
    this.socket.destroy()
  }
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

module.exports = { RconClient }
