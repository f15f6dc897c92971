import { readdirSync } from 'node:fs'
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'
import type { Life } from '../../helpers/mortal-child.js'

interface CopyPlan {
  readonly folder: string
  readonly cwd: string
}

function copy({ folder, cwd }: CopyPlan): Promise<unknown> {
  const folders = new IsolatedFolders({ folder, maxBytes: 1e9, closed: [] })
  return folders.create('run', cwd, { mounts: false })
}

/** Makes copies of a folder again and again. */
export async function copyForEver(plan: CopyPlan, life: Life): Promise<void> {
  for (;;) {
    life.say('again')
    await copy(plan)
  }
}

/** Makes a copy, and says why it failed and what is left of it. */
export async function copyOnce(plan: CopyPlan, life: Life): Promise<void> {
  await copy(plan).catch((error: Error) => life.say(error.message))
  life.say(`left: ${JSON.stringify(readdirSync(plan.folder))}`)
}
