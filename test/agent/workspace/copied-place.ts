import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { copyTree, removeFolder, type CopyPolicy } from '../../../lib/agent/workspace/copy.js'
import type { CopyJob, CopyResult } from '../../../lib/agent/workspace/tree-copy.js'
import { TreeCopy } from '../../../lib/agent/workspace/tree-copy.js'
import { wholeTree } from '../../helpers/whole-tree.js'

/** A folder to be copied, and where its copies go. */
export class Place {
  readonly top: string
  readonly from: string
  readonly to: string

  constructor(t: TestContext) {
    this.top = realpathSync(mkdtempSync(join(tmpdir(), 'copy-')))
    t.after(() => removeFolder(this.top))
    this.from = join(this.top, 'original')
    this.to = join(this.top, 'copies', 'original')
    mkdirSync(this.from)
    mkdirSync(join(this.top, 'copies'))
  }

  /** What a copy is made with when it is made without a worker. */
  get job(): CopyJob {
    const { from, to } = this
    return { from, to, copies: [{ from, to }], closed: [], maxBytes: Infinity, mounts: false }
  }

  write(path: string, content: string | Uint8Array = path, mode = 0o644): void {
    const file = join(this.from, path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, content)
    chmodSync(file, mode)
  }

  link(path: string, target: string): void {
    mkdirSync(join(this.from, path, '..'), { recursive: true })
    symlinkSync(target, join(this.from, path))
  }

  /** Copies in this thread, which is faster, unless there is a policy. */
  async copy(policy?: CopyPolicy): Promise<CopyResult> {
    const before = wholeTree(this.from)
    const result =
      policy === undefined
        ? new TreeCopy(this.job, () => false).run()
        : await copyTree(this.from, this.to, policy)
    assert.deepEqual(wholeTree(this.from), before, 'the original is as it was')
    return result
  }

  inCopy(path: string): string {
    return readFileSync(join(this.to, path), 'utf8')
  }
}

/** Does something as a user with bounds, in this thread. */
export function asOrdinaryUser<T>(place: Place, work: () => T): T {
  if (process.geteuid!() !== 0) return work()
  execFileSync('chown', ['-R', '65534', place.top])
  process.seteuid!(65534)
  try {
    return work()
  } finally {
    process.seteuid!(0)
  }
}
