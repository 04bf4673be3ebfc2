'use strict'
// Chat components: to the wire form of a version, and back to plain text.

const nbt = require('prismarine-nbt')

// The value of a packet's component field: NBT from 1.20.3, JSON text before.
exports.toPacket = (component, asNbt) => asNbt ? toNbt(component) : JSON.stringify(component)

// The text of a component in any of its forms (JSON text, NBT, object), translated with texts.
exports.toText = (value, texts) => flatten(parse(value), texts)

// The translation key of a component, if it is a translation.
exports.key = value => parse(value)?.translate

function toNbt (component) {
  if (Array.isArray(component)) return toNbt({ text: '', extra: component })
  if (typeof component !== 'object') return nbt.comp({ text: nbt.string(String(component)) })
  const fields = {}
  for (const [name, value] of Object.entries(component)) fields[name] = field(value)
  return nbt.comp(fields)
}

function field (value) {
  if (Array.isArray(value)) return nbt.list(nbt.comp(value.map(entry => toNbt(entry).value)))
  if (typeof value === 'boolean') return nbt.byte(value ? 1 : 0)
  if (typeof value === 'number') return Number.isInteger(value) ? nbt.int(value) : nbt.double(value)
  if (typeof value === 'object') return toNbt(value)
  return nbt.string(String(value))
}

function parse (value) {
  if (typeof value === 'string') {
    try { return JSON.parse(value) } catch { return value }
  }
  if (value && typeof value === 'object' && 'type' in value && 'value' in value) return nbt.simplify(value)
  return value
}

function flatten (component, texts) {
  if (component === null || component === undefined) return ''
  if (Array.isArray(component)) return component.map(part => flatten(part, texts)).join('')
  if (typeof component !== 'object') return String(component)
  const args = (component.with || []).map(part => flatten(part, texts))
  const own = component.translate ? texts.tr(component.translate, ...args) : String(component.text ?? component[''] ?? '')
  return own + flatten(component.extra || [], texts)
}
