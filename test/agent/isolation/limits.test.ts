/** How large the copies of isolated runs may be. */
import assert from 'node:assert/strict'
import { linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { WorkspaceTooLargeError } from 'runwright/agent'
import { openEngine, scratch } from '../../helpers/engine.js'

const REQUEST = { goal: 'shell: true', workspace: 'isolated' } as const

test('a run whose copy would be too large is refused when it is created', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'large'), Buffer.alloc(9_000))
  const options = { cwd, checkpoints: 'auto', workspaceFolder: scratch(t) } as const
  const { engine } = await openEngine(t, { ...options, maxWorkspaceBytes: 9_000 })
  await assert.rejects(engine.create(REQUEST), (error) => {
    assert.ok(error instanceof WorkspaceTooLargeError)
    assert.match(error.message, /more than 9000 bytes/)
    return true
  })
  assert.deepEqual((await engine.list()).runs, [])
})

test('content with two names counts once, and what is closed does not count', async (t) => {
  const cwd = scratch(t)
  writeFileSync(join(cwd, 'one'), Buffer.alloc(6_000))
  linkSync(join(cwd, 'one'), join(cwd, 'two'))
  const workspaceFolder = join(cwd, 'copies')
  mkdirSync(workspaceFolder)
  writeFileSync(join(workspaceFolder, 'large'), Buffer.alloc(9_000))
  const options = { cwd, checkpoints: 'auto', workspaceFolder } as const
  const { engine } = await openEngine(t, { ...options, maxWorkspaceBytes: 9_000 })
  const { details } = await engine.create(REQUEST)
  assert.equal(details.workspace, 'isolated')
})
