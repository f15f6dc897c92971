/** Helpers of the contract's tests. @module */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { hash as digest } from '../../../internal/hash.js'
import type { ObjectStore, StoredObject } from '../../object-store.js'

/** Defines tests, each with its own empty store. */
export interface ObjectSuite {
  test(title: string, body: (objects: ObjectStore, t: TestContext) => Promise<void>): void
}

export const HOUR_MS = 3_600_000

/** A blob of this content. */
export function blob(content: Uint8Array | string): StoredObject {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return { hash: digest('sha256', bytes), content: bytes }
}

/** Blobs of every kind: empty, tiny, text, random; around the sizes where storage may divide. */
export function sampleBlobs(): StoredObject[] {
  const mebi = 1 << 20
  return [
    blob(''),
    blob('a'),
    blob(Buffer.from([0, 255, 0, 10, 13])),
    blob('{"kind":"file"}'.repeat(5_000)),
    blob(Buffer.alloc(mebi)),
    ...[mebi - 1, mebi, mebi + 1, 3 * mebi + 5].map((size) => blob(randomBytes(size))),
  ]
}

/** Asserts that the blob is there with its exact content. */
export async function assertHolds(
  objects: ObjectStore,
  { hash, content }: StoredObject,
): Promise<void> {
  const found = await objects.get(hash)
  assert.ok(found !== null, `${hash} is missing`)
  assert.ok(Buffer.from(content).equals(found), `${hash} has other content`)
}

/** All hashes, read page by page. */
export async function listAll(objects: ObjectStore, limit = 7): Promise<string[]> {
  const all: string[] = []
  for (;;) {
    const page = await objects.list(all.at(-1) ?? null, limit)
    assert.ok(page.length <= limit, `${page.length} hashes in a page of ${limit}`)
    all.push(...page)
    if (page.length === 0) return all
  }
}
