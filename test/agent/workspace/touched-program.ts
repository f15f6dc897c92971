/** Reads and changes files in a copy below a folder, and prints what is found. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { copyTree } from '../../../lib/agent/workspace/copy.js'
import { fileSystemTime, touchedFiles } from '../../../lib/agent/workspace/touched-files.js'

const folder = process.argv[2]!
mkdirSync(`${folder}/original`)
for (const name of ['a.txt', 'b.txt']) writeFileSync(`${folder}/original/${name}`, 'x')
await copyTree(`${folder}/original`, `${folder}/copy`, { unread: true })
const since = await fileSystemTime(`${folder}/copy`)
for (const name of readdirSync(`${folder}/copy`)) readFileSync(`${folder}/copy/${name}`)
writeFileSync(`${folder}/copy/b.txt`, 'y')
console.log(JSON.stringify(await touchedFiles(`${folder}/copy`, since)))
