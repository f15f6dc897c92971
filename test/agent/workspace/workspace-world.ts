import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openWorkspace, type Workspace } from 'runwright/agent'

interface World {
  /** The workspace's folder; `top/outside` is beside it. */
  readonly root: string
  readonly top: string
  readonly workspace: Workspace
}

export async function world(t: TestContext, closed: readonly string[] = []): Promise<World> {
  const top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'runwright-workspace-')))
  t.after(() => fs.rmSync(top, { recursive: true, force: true }))
  const root = join(top, 'work')
  fs.mkdirSync(join(root, 'src'), { recursive: true })
  fs.mkdirSync(join(top, 'outside'))
  fs.writeFileSync(join(top, 'outside', 'secret'), 'secret')
  fs.writeFileSync(join(root, 'src', 'a.txt'), 'one\ntwo\n')
  return {
    top,
    root,
    workspace: await openWorkspace(root, { closed: closed.map((name) => join(top, name)) }),
  }
}

export async function text(workspace: Workspace, path: string): Promise<string> {
  return Buffer.from(await workspace.readFile(path)).toString()
}
