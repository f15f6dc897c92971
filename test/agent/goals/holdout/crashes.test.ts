import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { bundleWithWorkers } from '../../../helpers/bundle.js'
import { scratch } from '../../../helpers/engine.js'
import { put } from './world.js'

const run = promisify(execFile)

/** The last of as many processes as it takes, all but one of which die in an evaluation. */
async function afterDeaths(t: TestContext, deaths: number): Promise<Record<string, unknown>> {
  const folder = scratch(t)
  const [directory, root] = [join(folder, 'data'), join(folder, 'work')]
  mkdirSync(root)
  put(root, { code: '' })
  const script = bundleWithWorkers(new URL('crash-child.ts', import.meta.url), folder)
  const start = async (dies: boolean): Promise<string> => {
    const words = [script, JSON.stringify({ directory, root, dies })]
    return (await run(process.execPath, words)).stdout
  }
  for (let i = 0; i < deaths; i++)
    await assert.rejects(start(true), { signal: 'SIGKILL' })
  return JSON.parse(await start(false)) as Record<string, unknown>
}

test('an evaluation that a crash cut off counts, and the next one may pass', async (t) => {
  assert.deepEqual(await afterDeaths(t, 1), {
    end_reason: 'goal_achieved', holdout: true, evaluations: 2, copies: [],
  })
})

test('after three that were cut off, held-out tests are evaluated no more', async (t) => {
  assert.deepEqual(await afterDeaths(t, 3), {
    end_reason: 'holdout_exhausted', holdout: false, evaluations: 3, copies: [],
  })
})
