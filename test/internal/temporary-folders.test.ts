import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import {
  abandonedFolders, makeTemporaryFolder, pidNamespace, startOf,
} from '../../lib/internal/processes.js'
import { scratch } from '../helpers/engine.js'

const NAMESPACE = /\d+/.exec(pidNamespace() ?? '')?.[0] ?? '0'

test('a folder is private, and is not abandoned while its process runs', async (t) => {
  const parent = scratch(t)
  const folder = await makeTemporaryFolder('check', parent)
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  const start = startOf(process.pid) ?? '0'
  assert.match(
    basename(folder),
    new RegExp(`^runwright-check-${NAMESPACE}-${process.pid}-${start}-\\w{6}$`),
  )
  assert.deepEqual(await abandonedFolders([parent]), [])
})

test('folders of processes that have ended are abandoned, and nothing else', async (t) => {
  const parent = scratch(t)
  const ended = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
  await once(ended, 'exit')
  const own = `${NAMESPACE}-${process.pid}`
  const abandoned = [
    `runwright-check-${NAMESPACE}-${ended.pid}-77-aaaaaa`,
    `runwright-sealed-${NAMESPACE}-${ended.pid}-0-aaaaaa`,
    // A container that is started anew numbers its processes as before.
    ...(startOf(process.pid) === null ? [] : [`runwright-command-${own}-1-aaaaaa`]),
  ]
  const kept = [
    `runwright-check-${own}-0-aaaaaa`,
    // Another container, whose processes have the same numbers.
    `runwright-check-${NAMESPACE}9-${ended.pid}-77-aaaaaa`,
    `runwright-other-${NAMESPACE}-${ended.pid}-77-aaaaaa`,
    `runwright-check-${NAMESPACE}-${ended.pid}-77`,
    `other-runwright-check-${NAMESPACE}-${ended.pid}-77-aaaaaa`,
  ]
  for (const name of [...abandoned, ...kept]) mkdirSync(join(parent, name))
  writeFileSync(join(parent, `runwright-check-${NAMESPACE}-${ended.pid}-77-bbbbbb`), '')
  symlinkSync(parent, join(parent, `runwright-check-${NAMESPACE}-${ended.pid}-77-cccccc`))
  const found = await abandonedFolders([parent, join(parent, 'missing')])
  assert.deepEqual(found.map((path) => basename(path)).sort(), [...abandoned].sort())
})
