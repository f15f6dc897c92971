/** Texts as objects of checkpoints: an entry or a blob for each of their characters. */
import { rmSync, writeFileSync } from 'node:fs'
import { SystemDisk } from '../../lib/agent/stores/file/disk.js'
import { encodePack, Pack } from '../../lib/agent/stores/file/object-pack.js'
import {
  encodeFolder, FolderReader, MalformedTree,
} from '../../lib/agent/workspace/tree-objects.js'

/** Reads the object of a folder whose names and bytes are made of a text. */
export function readFolderOf(text: string): void {
  const entries = [...text].map((character, i) => ({
    kind: 'file' as const, name: `${character}${i}`, mode: 0o644, size: i, isStored: true,
    sha256: `${i}`.padStart(64, '0'),
  }))
  const leftOut = [{ reason: 'size' as const, count: 1, paths: [text] }]
  for (const bytes of [encodeFolder(entries, leftOut), Buffer.from(`\x01\x00${text}`, 'latin1')]) {
    try {
      for (const _ of new FolderReader(bytes).entries()) continue
    } catch (error) {
      if (!(error instanceof MalformedTree)) throw error
    }
  }
}

/** Reads a pack whose hashes begin with the characters of a text, and the text as a pack. */
export async function readPackOf(text: string, path: string): Promise<void> {
  const disk = new SystemDisk(false)
  const blobs = [...text].map((character, i) => ({
    hash: character.charCodeAt(0).toString(16).padEnd(8, '0') + `${i}`.padStart(56, '0'),
    data: Buffer.from(character),
  }))
  const { parts } = await encodePack(blobs)
  for (const content of [Buffer.concat(parts), Buffer.from(text, 'latin1')]) {
    writeFileSync(path, content)
    const pack = await Pack.read(disk, path, 0)
    await pack?.blobs(disk)
    const fd = disk.open(path, 'r')
    pack?.locate(disk, fd, `${blobs[0]!.hash.slice(0, 8)}${'f'.repeat(56)}`)
    for (let first = 0; first < 256; first++) pack?.hashes(disk, fd, first)
    disk.close(fd)
  }
  rmSync(path)
}
