/** Copies two megabytes to a disk that has less; the first argument is a folder on it. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'

const folder = join(process.argv[2]!, 'workspaces')
const cwd = mkdtempSync(join(tmpdir(), 'full-'))
mkdirSync(join(cwd, 'a'))
for (let i = 0; i < 20; i++) writeFileSync(join(cwd, 'a', String(i)), Buffer.alloc(100_000, 1))
const folders = new IsolatedFolders({ folder, maxBytes: 1e9, closed: [] })
try {
  await folders.create('run', cwd, { mounts: false })
} catch (error) {
  console.log((error as Error).message)
}
console.log('left:', readdirSync(folder))
rmSync(cwd, { recursive: true })
