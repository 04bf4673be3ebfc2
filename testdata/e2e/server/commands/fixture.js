'use strict'
// Orders of a test. Every one answers "ok" at once, also while the server hangs.

const switchOf = reader => reader.done || reader.choice('true', 'false') === 'true'

exports['fixture:load'] = order((call, reader) => {
  call.world.load = { mspt: reader.number(), tps: reader.number() }
})

exports['fixture:delay'] = order((call, reader) => call.faults.delay(reader.word(), reader.integer()))

exports['fixture:drop'] = order((call, reader) => call.faults.drop(reader.word(), reader.done ? 1 : reader.integer()))

exports['fixture:hang'] = order((call, reader) => call.faults.hang(switchOf(reader)))

exports['fixture:unsafe'] = order((call, reader) => {
  call.world.hazard = switchOf(reader) ? { ground: 'magma_block', body: 'lava' } : null
})

exports['fixture:block'] = order((call, reader, ctx) => {
  const [x, y, z] = [reader.integer(), reader.integer(), reader.integer()]
  call.world.place(ctx.dim, x, y, z, reader.word().replace(/^minecraft:/, ''))
})

exports['fixture:ocean'] = order((call, reader) => {
  call.world.oceanFrom = reader.peek() === 'off' ? Infinity : reader.number()
})

exports['fixture:border'] = order((call, reader) => { call.world.borderWidth = reader.integer() })

exports['fixture:long'] = { run: (call, reader) => call.say('x'.repeat(reader.integer())) }

function order (run) {
  return {
    run (call, reader, ctx) {
      run(call, reader, ctx)
      call.say('ok')
    }
  }
}
