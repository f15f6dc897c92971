/** A run of a tree whose log cannot be read keeps none of the others from its end. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { FileStore, type RunDetails, type RunEngine, type RunSummary } from 'runwright/agent'
import { untilAborted } from '../../../helpers/abort.js'
import { follow, payloads, scratch } from '../../../helpers/engine.js'
import { journalFiles } from '../../stores/store-files.js'
import { writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

const GOAL = 'shell: grep -q good answer.txt'

/** Changes a byte in the first line of a run in the journal of a store that is closed. */
function damage(directory: string, runId: string): void {
  for (const path of journalFiles(directory)) {
    const text = readFileSync(path, 'utf8')
    const at = text.indexOf(`"run":"${runId}"`)
    if (at < 0) continue
    return writeFileSync(path, text.slice(0, at) + text.slice(at).replace('answer', 'anwser'))
  }
  assert.fail(`no line of ${runId}`)
}

interface Family {
  readonly engine: RunEngine
  readonly parent: RunDetails
  readonly children: readonly RunSummary[]
}

/** Starts two attempts, damages the log of a run when both work, and starts again. */
async function restarted(
  t: TestContext,
  damaged: (parent: string, children: readonly string[]) => string,
): Promise<Family> {
  const directory = scratch(t)
  const folders = { cwd: scratch(t), copies: scratch(t) }
  writeFiles(folders.cwd, { 'answer.txt': 'none\n' })
  const calls: (() => void)[] = []
  let bothWork: () => void = () => undefined
  const working = new Promise<void>((resolve) => (bothWork = resolve))
  const silent: Brain = ({ signal }) =>
    new Promise((_, reject) => {
      untilAborted(signal).catch(reject)
      if (calls.push(reject) === 2) bothWork()
    })
  const before = new FileStore({ directory })
  const first = await openFamily(t, { silent }, { ...folders, store: before })
  const { details } = await first.engine.create({ goal: GOAL, attempts: { count: 2 } })
  await working
  const { attempts } = await first.engine.get(details.run_id)
  const ids = attempts?.runs.map(({ run_id }) => run_id) ?? []
  await first.engine.close()
  damage(directory, damaged(details.run_id, ids))
  const store = new FileStore({ directory, onWarning: () => undefined })
  const models = { silent: writes('answer.txt', 'good\n') }
  const { engine } = await openFamily(t, models, { ...folders, store })
  const { runs } = await engine.list({ root: details.run_id })
  const children = runs.filter(({ role }) => role === 'attempt')
  return { engine, parent: details, children }
}

test('an attempt whose log is damaged has failed, and another one wins', async (t) => {
  const { engine, parent } = await restarted(t, (_, [first]) => first!)
  const events = await follow(engine, parent.run_id)
  const ends = payloads(events, 'attempt_ended')
  const [damaged, whole] = ends.toSorted((a, b) => a.attempt - b.attempt)
  assert.equal(damaged?.status, 'failed')
  assert.match(damaged?.reason ?? '', /is quarantined: .* is damaged/)
  assert.equal(whole?.status, 'achieved')
  assert.equal((await engine.get(parent.run_id)).status, 'achieved')
})

test('runs whose parent is damaged end as aborted', async (t) => {
  const { engine, children } = await restarted(t, (parent) => parent)
  assert.equal(children.length, 2)
  for (const { run_id } of children) {
    await follow(engine, run_id)
    assert.equal((await engine.get(run_id)).status, 'aborted')
  }
})
