import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RunEngine } from 'runwright/agent'
import { follow } from './engine.js'

/**
 * Creates runs of several tenants until the queue is full. The engines share it: they run one at a
 * time, which does not end, four may wait, and runs may share folders, which are made in `root`.
 */
export async function assertPlacesOfTenants(
  engines: readonly RunEngine[],
  root: string,
): Promise<void> {
  let created = 0
  const create = async (tenant: string | null): Promise<string> => {
    const engine = engines[created++ % engines.length]!
    const caller = { owner: { id: null, tenant } }
    const cwd = join(root, String(tenant))
    mkdirSync(cwd, { recursive: true })
    const { details } = await engine.create({ goal: 'shell: false', cwd }, { caller })
    return details.run_id
  }
  await follow(engines[0]!, await create('a'), ({ kind }) => kind === 'step_start')
  const outcomes: string[] = []
  for (const tenant of ['a', 'a', 'a', 'b', 'b', null, null, 'c']) {
    const outcome = create(tenant).then(() => 'waits', ({ code }: NodeJS.ErrnoException) => code)
    outcomes.push(`${tenant}: ${await outcome}`)
  }
  const full = 'ERR_AGENT_QUEUE_FULL'
  assert.deepEqual(outcomes, [
    'a: waits', 'a: waits', `a: ${full}`, 'b: waits', `b: ${full}`, 'null: waits', `null: ${full}`,
    `c: ${full}`,
  ])
}
