import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Children } from '../../../helpers/kill.js'
import { World } from '../../../helpers/world.js'

const children = new Children<typeof import('./crash-children.js')>(
  new URL('crash-children.ts', import.meta.url),
)

/** The end of the last of as many processes as it takes; all before it die in an evaluation. */
async function afterDeaths(t: TestContext, deaths: number): Promise<unknown> {
  const { data: directory, cwd: root } = new World(t, { files: { code: '' } })
  const live = (dieAt: number) => children.run('evaluate', { directory, root }, { dieAt })
  for (let i = 0; i < deaths; i++) assert.equal((await live(1)).signal, 'SIGKILL')
  return JSON.parse((await live(0)).lines[0] ?? '')
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
