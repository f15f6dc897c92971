/** The API guard, see guard.ts: `npm run api [-- --accept 'line for CHANGELOG.md']`. */
import { fileURLToPath } from 'node:url'
import { openService } from '../server/open-service.js'
import { guard } from './guard.js'
import { signatures } from './signature.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const current = new Map<string, string>()
for (const [specifier, text] of signatures(root))
  current.set(`${specifier.replaceAll('/', '-')}.api.txt`, text)
await using opened = await openService({ metrics: true, demo: () => Promise.reject(new Error()) })
for (const name of ['openapi.json', 'asyncapi.json']) {
  const { json } = await opened.call('GET', `/api/${name}`)
  current.set(name, `${JSON.stringify(json, null, 2)}\n`)
}
const { ok, text } = guard(root, process.argv.slice(2), current)
console.log(text)
process.exitCode = ok ? 0 : 1
