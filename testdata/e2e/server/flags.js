'use strict'

// Reads "--name value" pairs. The default's type is the flag's type; an unknown or ill-typed flag ends the process with status 2.
exports.parse = (argv, defaults) => {
  const flags = { ...defaults }
  for (let i = 0; i < argv.length; i += 2) {
    const name = argv[i].replace(/^--/, '')
    if (!argv[i].startsWith('--') || !(name in defaults)) fail(`unknown flag ${argv[i]}; known: --${Object.keys(defaults).join(' --')}`)
    if (argv[i + 1] === undefined) fail(`flag --${name} needs a value`)
    flags[name] = convert(name, argv[i + 1], typeof defaults[name])
  }
  return flags
}

function convert (name, text, type) {
  if (type === 'number') {
    if (!/^\d+$/.test(text)) fail(`flag --${name} needs a number, not ${JSON.stringify(text)}`)
    return Number(text)
  }
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') fail(`flag --${name} is true or false, not ${JSON.stringify(text)}`)
    return text === 'true'
  }
  return text
}

function fail (message) {
  process.stderr.write(message + '\n')
  process.exit(2)
}
