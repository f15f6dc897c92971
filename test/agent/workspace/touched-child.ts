import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { copyTree } from '../../../lib/agent/workspace/copy.js'
import { fileSystemTime, touchedFiles } from '../../../lib/agent/workspace/touched-files.js'
import type { Life } from '../../helpers/mortal-child.js'

/** Reads and changes files in a copy below a folder, and says what is found. */
export async function touch({ folder }: { readonly folder: string }, life: Life): Promise<void> {
  mkdirSync(`${folder}/original`)
  for (const name of ['a.txt', 'b.txt']) writeFileSync(`${folder}/original/${name}`, 'x')
  await copyTree(`${folder}/original`, `${folder}/copy`, { unread: true })
  const since = await fileSystemTime(`${folder}/copy`)
  for (const name of readdirSync(`${folder}/copy`)) readFileSync(`${folder}/copy/${name}`)
  writeFileSync(`${folder}/copy/b.txt`, 'y')
  life.say(JSON.stringify(await touchedFiles(`${folder}/copy`, since)))
}
