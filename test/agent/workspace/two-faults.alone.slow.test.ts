/** Replaces functions of node:fs, so it has a process of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applySteps, HalfAppliedError } from '../../../lib/agent/workspace/apply.js'
import { FailingDisk } from '../../helpers/faults.js'
import { contentsOf, file, listing, readModel, type Model } from '../../helpers/tree-model.js'
import { Disk, filesOf, steps } from './work-folders.js'

const BEFORE = filesOf({ gone: file('old'), kept: file('old'), other: file('old') })
const AFTER = filesOf({ new: file('new'), kept: file('new'), other: file('new 2') })

type State = 'done' | 'half' | 'undone'

/** Changes a folder; the disk fails once, at this call. */
async function change(
  folder: string,
  disk: FailingDisk,
  again: boolean,
  at: number,
): Promise<State> {
  disk.fail({ code: 'EIO', at, calls: 1 })
  try {
    await applySteps(folder, steps(BEFORE, AFTER), contentsOf(AFTER), { key: 'k', again })
    return 'done'
  } catch (error) {
    return error instanceof HalfAppliedError ? 'half' : 'undone'
  } finally {
    disk.heal()
  }
}

function shown(model: Model): string {
  return JSON.stringify(listing(model))
}

test('a fault at any call, and one at any call of the next attempt, leave no half of a change', async () => {
  using disk = await FailingDisk.open()
  let attempts = 0
  for (let [first, second, isMore] = [1, 1, true]; isMore; ) {
    using folder = new Disk(BEFORE)
    let state = await change(folder.folder, disk, false, first)
    isMore = disk.failed > 0
    const isHalf = state === 'half'
    if (isHalf) {
      attempts += 1
      state = await change(folder.folder, disk, true, second)
      second = disk.failed > 0 ? second + 1 : 1
    }
    if (state === 'half') state = await change(folder.folder, disk, true, Infinity)
    const hint = `${first} and ${second}: ${state}`
    assert.notEqual(state, 'half', hint)
    assert.equal(shown(readModel(folder.folder)), shown(state === 'done' ? AFTER : BEFORE), hint)
    if (!isHalf || second === 1) first += 1
  }
  assert.ok(attempts > 20, `${attempts}`)
})
