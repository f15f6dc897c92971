import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { objectsOf } from '../../../lib/agent/workspace/read-tree.js'
import { encodeFolder, type FolderEntry } from '../../../lib/agent/workspace/tree-objects.js'

/** Objects by hash, whether their content has it or not. */
export class Objects {
  readonly blobs: Map<string, Uint8Array> = new Map()
  gets = 0

  add(content: Uint8Array | string): string {
    const id = hash('sha256', content)
    this.blobs.set(id, Buffer.from(content))
    return id
  }

  async get(id: string): Promise<Uint8Array | null> {
    this.gets += 1
    return this.blobs.get(id) ?? null
  }

  file(name: string, content: string = name): FolderEntry {
    const sha256 = this.add(content)
    return { name, kind: 'file', mode: 0o644, size: content.length, sha256, isStored: true }
  }

  folder(name: string, ...entries: FolderEntry[]): FolderEntry {
    return { name, kind: 'folder', mode: 0o755, sha256: this.add(encodeFolder(entries)) }
  }

  top(...entries: FolderEntry[]): string {
    return this.add(encodeFolder(entries, []))
  }
}

export async function all(
  objects: Objects,
  id: string,
  seen: Set<string> = new Set(),
): Promise<string[]> {
  const found: string[] = []
  for await (const one of objectsOf(objects, id, seen)) found.push(one)
  return found
}

export const corrupt = (id: string, reason: RegExp) => (error: Error): boolean => {
  assert.equal((error as NodeJS.ErrnoException).code, 'ERR_AGENT_STORE_CORRUPT')
  assert.match(error.message, reason)
  assert.ok(error.message.includes(id), error.message)
  return true
}
