'use strict'
// Deletes the Bedrock half of minecraft-data (about 395 of 522 MB). Its common/ folder stays: requiring the package reads it.

const fs = require('fs')
const path = require('path')

const bedrock = path.join(__dirname, 'node_modules', 'minecraft-data', 'minecraft-data', 'data', 'bedrock')
for (const entry of fs.readdirSync(bedrock)) {
  if (entry !== 'common') fs.rmSync(path.join(bedrock, entry), { recursive: true, force: true })
}
