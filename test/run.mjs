/**
 * Runs tests, as `run-files.mjs` says, which an old Node cannot read: that is told which one is
 * needed.
 */
import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
const [version = '', ...least] = /(\d+)\.(\d+)/.exec(JSON.parse(manifest).engines.node) ?? []
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const [leastMajor = 0, leastMinor = 0] = least.map(Number)
if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
  console.error(`the tests need Node ${version} or newer; this is ${process.version}`)
  process.exit(1)
}
await import('./run-files.mjs')
