'use strict'
// PROXY protocol version 2 in front of a net.Server, required on every connection as Paper does once it is switched on.

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const HEADER = 16

// Puts itself before the server's own connection listener. accepted sockets carry .proxiedAddress ("ip:port", or undefined for
// LOCAL); onRefused(reason) is told of the others, which are closed.
exports.require = (server, onRefused) => {
  const [accept] = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', socket => readHeader(socket, refused => {
    if (!refused) return accept.call(server, socket)
    onRefused(refused)
    socket.destroy()
  }))
}

function readHeader (socket, done) {
  let seen = Buffer.alloc(0)
  const onData = data => {
    seen = Buffer.concat([seen, data])
    const known = Math.min(seen.length, SIGNATURE.length)
    if (!seen.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return finish('no PROXY v2 header')
    if (seen.length < HEADER) return
    const length = HEADER + seen.readUInt16BE(14)
    if (seen.length < length) return
    socket.proxiedAddress = address(seen.subarray(0, length))
    finish(null, seen.subarray(length))
  }
  const finish = (refused, rest) => {
    socket.off('data', onData)
    socket.pause()
    if (rest && rest.length > 0) socket.unshift(rest)
    done(refused)
    socket.resume()
  }
  socket.on('error', () => {})
  socket.on('data', onData)
}

function address (header) {
  const local = (header[12] & 0x0f) === 0
  if (local) return undefined
  if (header[13] === 0x11) return `${[...header.subarray(16, 20)].join('.')}:${header.readUInt16BE(24)}`
  if (header[13] === 0x21) {
    const groups = []
    for (let i = 16; i < 32; i += 2) groups.push(header.readUInt16BE(i).toString(16))
    return `[${groups.join(':')}]:${header.readUInt16BE(48)}`
  }
  return undefined
}
