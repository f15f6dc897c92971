import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import assert from 'node:assert/strict'
import {
  IsolatedFolders, type CreateOptions, type IsolatedFoldersOptions, type NewCopy,
} from '../../lib/agent/isolation/isolated-folders.js'
import { removeFolder } from '../../lib/agent/workspace/copy.js'
import { wholeTree, type WholeTreeOptions } from './whole-tree.js'

/** A project, and a place for copies of it beside it. */
export class Project {
  readonly top: string
  readonly cwd: string
  readonly folders: IsolatedFolders
  readonly copies: string

  /** @param below the path of the project below its top */
  constructor(t: TestContext, below: string = 'project') {
    this.top = realpathSync(mkdtempSync(join(tmpdir(), 'isolated-')))
    t.after(() => removeFolder(this.top))
    this.cwd = join(this.top, below)
    mkdirSync(this.cwd, { recursive: true })
    this.copies = join(this.top, 'data/workspaces')
    this.folders = this.foldersWith({})
  }

  foldersWith(options: Partial<IsolatedFoldersOptions>): IsolatedFolders {
    const closed = [join(this.top, 'data')]
    return new IsolatedFolders({ folder: this.copies, maxBytes: 1e9, closed, ...options })
  }

  /** Writes files by path; `@` in a text stands for the project. */
  write(files: Readonly<Record<string, string>>, mode = 0o644): this {
    for (const [path, text] of Object.entries(files)) {
      const file = join(this.cwd, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text.replaceAll('@/', `${this.cwd}/`))
      chmodSync(file, mode)
    }
    return this
  }

  /** Makes links by path; `@` stands for the project. */
  link(links: Readonly<Record<string, string>>): this {
    for (const [path, target] of Object.entries(links)) {
      const link = join(this.cwd, path)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(target.replace(/^@/, this.cwd), link)
    }
    return this
  }

  async isolate(runId = 'run', options: Partial<CreateOptions> = {}): Promise<NewCopy> {
    return await this.folders.create(runId, this.cwd, { mounts: false, ...options })
  }

  /** Runs a command in the project, which has to succeed. */
  run(command: string, cwd: string = this.cwd): string {
    return execFileSync('sh', ['-c', command], { cwd, encoding: 'utf8', env: ENV, stdio: 'pipe' })
  }

  /** What everything outside the copies is, to be compared with {@link Project.assertUntouched}. */
  outside(options: WholeTreeOptions = {}): Record<string, string> {
    const entries = Object.entries(wholeTree(this.top, options))
    return Object.fromEntries(entries.filter(([path]) => !/^(data(\/|$)|$)/.test(path)))
  }

  assertUntouched(before: Record<string, string>, options?: WholeTreeOptions): void {
    assert.deepEqual(this.outside(options), before, 'the original is as it was')
  }
}

const ENV = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@a', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@a',
  PYTHONDONTWRITEBYTECODE: '1',
}

/** Runs a command that may fail; the result has what it wrote. */
export function attempt(command: string, cwd: string): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd, encoding: 'utf8', env: ENV,
  })
  return { status, output: stdout + stderr }
}
