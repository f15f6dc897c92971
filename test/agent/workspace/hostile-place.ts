import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { removeTree } from '../../../lib/agent/workspace/remove-tree.js'
import { TreeCopy } from '../../../lib/agent/workspace/tree-copy.js'

/** A folder to be copied, and where its copies go. */
export class Place {
  readonly top: string
  readonly from: string
  readonly to: string

  constructor(t: TestContext) {
    this.top = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'hostile-copy-')))
    t.after(() => removeTree(this.top))
    this.from = join(this.top, 'above', 'original')
    this.to = join(this.top, 'copy')
    fs.mkdirSync(this.from, { recursive: true })
  }

  write(path: string, content: string | Uint8Array): this {
    const file = join(this.from, path)
    fs.mkdirSync(dirname(file), { recursive: true })
    fs.writeFileSync(file, content)
    return this
  }

  /**
   * Copies in this thread, which is faster; returns what there is to tell.
   *
   * @param onEntry called with the number of each entry, before it is copied
   */
  copy(onEntry: (count: number) => void = () => undefined): string {
    const { from, to } = this
    const copies = [{ from, to }]
    const job = { from, to, copies, closed: [], maxBytes: Infinity, mounts: false }
    let count = 0
    const isAborted = (): boolean => (onEntry((count += 1)), false)
    return new TreeCopy(job, isAborted).run().notes.join('\n')
  }

  inCopy(path: string): string {
    return fs.readFileSync(join(this.to, path), 'utf8')
  }
}
