'use strict'

const crypto = require('crypto')
const { Scoreboard } = require('./scoreboard')

const DIMENSIONS = ['minecraft:overworld', 'minecraft:the_nether', 'minecraft:the_end']

// Chunks around a forced one and around a player whose entities and blocks a command can reach.
const FORCED_REACH = 2
const PLAYER_REACH = 4

// What the server would know: who is where, which chunks are loaded, what stands at a place. Hilly grass without end, in every dimension.
class World {
  constructor () {
    this.players = new Map() // name -> { name, uuid, pos, dim, client }, in order of joining
    this.entities = [] // summoned: { type, label, uuid, tags, pos, dim }
    this.forced = new Map(DIMENSIONS.map(dim => [dim, new Map()])) // dim -> "x z" -> [x, z]
    this.scoreboard = new Scoreboard()
    this.load = { mspt: 1.2, tps: 20 }
    this.borderWidth = 59999968
    this.oceanFrom = Infinity // |x| or |z| from which nothing can be spread
    this.hazard = null // { ground, body } in place of grass and air
    this.blocks = new Map() // "dim x y z" -> block name
  }

  static isDimension (dim) {
    return DIMENSIONS.includes(dim)
  }

  player (name) {
    return [...this.players.values()].find(player => player.name.toLowerCase() === name.toLowerCase())
  }

  summon (type, label, tags, pos, dim) {
    this.entities.push({ type, label, tags, pos, dim, uuid: crypto.randomUUID() })
  }

  kill (entity) {
    this.entities = this.entities.filter(other => other !== entity)
  }

  // Entities a selector can see: those in unloaded chunks still exist, but not for commands.
  visibleEntities () {
    return this.entities.filter(entity => this.reachable(entity.dim, entity.pos[0], entity.pos[2]))
  }

  reachable (dim, x, z) {
    const near = ([cx, cz], reach) => Math.abs(cx - chunk(x)) <= reach && Math.abs(cz - chunk(z)) <= reach
    return [...this.forced.get(dim).values()].some(at => near(at, FORCED_REACH)) ||
      [...this.players.values()].some(player => player.dim === dim && near([chunk(player.pos[0]), chunk(player.pos[2])], PLAYER_REACH))
  }

  // The y of the first free block of a column.
  surface (x, z) {
    const hill = (Math.floor(x) * 31 + Math.floor(z) * 17) % 8
    return 64 + (hill + 8) % 8
  }

  blockAt (dim, x, y, z) {
    const placed = this.blocks.get([dim, x, y, z].join(' '))
    if (placed) return placed
    const free = y - this.surface(x, z)
    if (free >= 2) return 'air'
    if (free >= 0) return this.hazard ? this.hazard.body : 'air'
    if (free === -1) return this.hazard ? this.hazard.ground : 'grass_block'
    return 'stone'
  }

  place (dim, x, y, z, block) {
    this.blocks.set([dim, x, y, z].join(' '), block)
  }
}

const chunk = coordinate => Math.floor(coordinate) >> 4

module.exports = { World, chunk }
