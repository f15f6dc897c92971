import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sandboxArguments } from '../../../lib/agent/executors/sandbox.js'
import { scratch } from '../../helpers/engine.js'

for (const [what, swap] of [
  ['a link to what is hidden takes the place of the packages', ({ original, data }) => {
    rmSync(join(original, 'a/node_modules'), { recursive: true })
    symlinkSync(data, join(original, 'a/node_modules'))
  }],
  ['a link takes the place of a folder above the packages', ({ original, data }) => {
    rmSync(join(original, 'a'), { recursive: true })
    symlinkSync(data, join(original, 'a'))
  }],
  ['a link out of the sandbox takes the place of the mount', ({ root, data }) => {
    rmSync(join(root, 'a/node_modules'), { recursive: true })
    symlinkSync(`/oldroot${data}`, join(root, 'a/node_modules'))
  }],
  ['a link out of the sandbox takes the place of a folder above it', ({ root }) => {
    renameSync(join(root, 'a'), join(root, 'b'))
    symlinkSync('b', join(root, 'a'))
  }],
  ['a file takes the place of the mount', ({ root }) => {
    rmSync(join(root, 'a/node_modules'), { recursive: true })
    writeFileSync(join(root, 'a/node_modules'), '')
  }],
  ['the place of the mount is gone', ({ root }) => rmSync(join(root, 'a'), { recursive: true })],
] as [string, (place: Record<'original' | 'root' | 'data', string>) => void][]) {
  test(`packages are not mounted once ${what}`, async (t) => {
    const top = scratch(t)
    const [original, root, data] = ['original', 'copy', 'data'].map((name) => join(top, name))
    for (const folder of [original!, root!, data!]) {
      mkdirSync(join(folder, 'a/node_modules'), { recursive: true })
      mkdirSync(join(folder, 'c/node_modules'), { recursive: true })
    }
    const mount = (name: string): { from: string; to: string } => ({
      from: join(original!, name, 'node_modules'), to: join(root!, name, 'node_modules'),
    })
    const mounted = async (): Promise<string[]> => {
      const plan = {
        cwd: root!, home: undefined, path: '/usr/bin', network: false, readOnly: [], writable: [],
        closed: [data!], packages: null,
        isolated: { root: root!, original: original!, readOnly: [mount('a'), mount('c')] },
      }
      const found = await sandboxArguments(plan)
      return found.filter((_, i) => found[i - 2] === '--ro-bind-try' && found[i]!.startsWith(root!))
    }
    assert.deepEqual(await mounted(), [mount('a').to, mount('c').to])
    swap({ original: original!, root: root!, data: data! })
    assert.deepEqual(await mounted(), [mount('c').to])
  })
}
