/** Paths that the machine cannot look up right now are not taken for paths that do not exist. */
import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sandboxArguments } from '../../../lib/agent/executors/sandbox.js'
import { isExhausted } from '../../../lib/agent/exhaustion.js'
import { packagesAbove } from '../../../lib/agent/isolation/above.js'
import { closedInCopy } from '../../../lib/agent/workspace/closed-folders.js'
import { followLinks, locateRoot } from '../../../lib/agent/workspace/paths.js'
import { scratch } from '../../helpers/engine.js'
import { OwnFiles } from '../../helpers/own-files.js'

interface Place {
  /** A folder with a link `data` to another one. */
  readonly cwd: string
  readonly data: string
}

const plan = { home: undefined, path: '', network: false, readOnly: [], writable: [] }

const LOOKUPS: readonly [string, string, (place: Place) => Promise<unknown>][] = [
  ['a workspace', 'realpath at/data', ({ data }) => locateRoot(data, undefined)],
  ['the roots of workspaces', 'realpath at/data', ({ cwd, data }) => locateRoot(cwd, [data])],
  ['where a link leads', 'readlink at/data', ({ cwd, data }) =>
    followLinks(data, [{ named: cwd, real: cwd }])],
  ['closed folders of a copy', 'realpath at/data', ({ cwd, data }) => closedInCopy(cwd, [data])],
  ['closed folders of a sandbox', 'realpath at/data', ({ cwd, data }) =>
    sandboxArguments({ ...plan, cwd, closed: [data], packages: null })],
  ['a package', 'lstat at/data/package.json', ({ data }) => packagesAbove(data, [])],
]

for (const [what, call, look] of LOOKUPS) {
  test(`${what} cannot be looked up: the machine is at fault`, async (t) => {
    const cwd = scratch(t)
    const data = join(cwd, 'data')
    mkdirSync(join(cwd, 'real'))
    symlinkSync('real', data)
    using own = new OwnFiles({ at: cwd })
    own.fail(call, 'ENOMEM')
    await assert.rejects(look({ cwd, data }), (error) => isExhausted(error))
    assert.equal(own.refused, 1)
  })
}
