/**
 * What git takes for the files of a repository, for checks that ask it: the index, and attributes.
 * A run may add to them, but neither hide a file from git nor take one out that is still there.
 *
 * @module
 */
import { join } from 'node:path'
import { hash } from '../../../internal/hash.js'

import { inSlices, LongWork } from '../../../internal/time.js'
import type { GitState } from '../../check-files.js'
import { readRegularFile } from '../small-file.js'
import { existingIn } from './file-states.js'
import { isNeverOfChecks, languageOf } from './file-kinds.js'
import { listFiles } from './list-files.js'
import { TextReader } from './read-texts.js'

const MAX_INDEX_BYTES = 32 * 1024 * 1024
const MAX_TRACKED = 100_000
const MAX_TEXTS = 200
const MAX_ATTRIBUTES = 512 * 1024
/** Characters of the hash of a path. */
const HASH_LENGTH = 10
const ASKS_GIT =
  /\bgit\b[^\n]{0,100}\b(?:ls-files|diff|status|grep|checkout|restore|archive|stash)\b/

/** Does a check ask git: its command, scripts behind it, or a program that belongs to it? */
async function asksGit(
  root: string,
  script: string,
  baseline: readonly string[],
): Promise<boolean> {
  if (ASKS_GIT.test(script)) return true
  const texts = new TextReader(root)
  const programs = baseline.filter((path) => languageOf(path) !== 'data').slice(0, MAX_TEXTS)
  for (const path of programs) if (ASKS_GIT.test((await texts.read(path)) ?? '')) return true
  return false
}

/**
 * Reads the state of git in a folder. Null if the check does not use git, the folder is not a
 * repository, or its index is too large.
 */
export async function gitState(
  cwd: string,
  script: string,
  baseline: readonly string[],
): Promise<GitState | null> {
  const hasIndex = (await existingIn(cwd, ['.git/index'])).length > 0
  if (!hasIndex || !(await asksGit(cwd, script, baseline))) return null
  const index = await indexOf(cwd)
  if (index === null || index.size > MAX_TRACKED) return null
  const hidden = [...index].filter(([, isHidden]) => isHidden).map(([path]) => path)
  const tracked = await inSlices(hashesOf(index.keys()))
  return { tracked: tracked.sort().join(''), hidden, attributes: await attributesOf(cwd) }
}

/**
 * How git was kept from seeing files of the folder since then: a phrase for each.
 *
 * @throws as {@link listFiles} does.
 */
export async function gitChanges(
  cwd: string,
  before: GitState,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const index = await indexOf(cwd)
  if (index === null) return ['the index of git was removed']
  const changes: string[] = []
  const hidden = new Set(before.hidden)
  for (const [path, isHidden] of index) {
    if (isHidden && !hidden.has(path)) changes.push(`${path} was hidden from git`)
  }
  const tracked = new Set<string>()
  for (let at = 0; at < before.tracked.length; at += HASH_LENGTH) {
    tracked.add(before.tracked.slice(at, at + HASH_LENGTH))
  }
  const work = new LongWork()
  for (const { path } of await listFiles(cwd, signal)) {
    if (work.isDue) await work.next()
    if (index.has(path) || isNeverOfChecks(path) || !tracked.has(hashOf(path))) continue
    changes.push(`${path} was taken out of the index of git`)
  }
  if ((await attributesOf(cwd)) !== before.attributes) changes.push('.gitattributes was modified')
  return changes
}

function* hashesOf(paths: Iterable<string>): Generator<void, string[]> {
  const found: string[] = []
  for (const path of paths) {
    yield
    found.push(hashOf(path))
  }
  return found
}

const hashOf = (path: string): string => hash('sha256', path, 'base64url').slice(0, HASH_LENGTH)

async function attributesOf(cwd: string): Promise<string> {
  const content = await readRegularFile(join(cwd, '.gitattributes'), MAX_ATTRIBUTES)
  return typeof content === 'string' ? content : hash('sha256', content)
}

/** Paths in the index, and whether git is told to take a file for unchanged; null without one. */
export async function indexOf(cwd: string): Promise<ReadonlyMap<string, boolean> | null> {
  const content = await readRegularFile(join(cwd, '.git/index'), MAX_INDEX_BYTES)
  if (typeof content === 'string') return null
  // Objects are named by SHA-1, or by SHA-256.
  return (await inSlices(entriesOf(content, 20))) ?? (await inSlices(entriesOf(content, 32)))
}

const ASSUMED_UNCHANGED = 0x8000
const EXTENDED = 0x4000
const SKIPPED = 0x4000
const HEADER_BYTES = 12
/** Bytes of a path: those of version 4 share their beginnings. */
const MAX_PATH = 4_096
/** Times, device, owner and size of a file. */
const STAT_BYTES = 40

/** See "index-format" in the documentation of git: versions 2 to 4. */
function* entriesOf(
  index: Buffer,
  hashBytes: number,
): Generator<void, ReadonlyMap<string, boolean> | null> {
  if (index.length < HEADER_BYTES || index.toString('latin1', 0, 4) !== 'DIRC') return null
  const version = index.readUInt32BE(4)
  const count = index.readUInt32BE(8)
  const found = new Map<string, boolean>()
  let at = HEADER_BYTES
  let before = Buffer.alloc(0)
  for (let i = 0; i < count; i++) {
    yield
    const start = at
    at += STAT_BYTES + hashBytes
    if (at + 4 > index.length) return null
    const flags = index.readUInt16BE(at)
    const isExtended = version >= 3 && (flags & EXTENDED) !== 0
    const isSkipped = isExtended && (index.readUInt16BE(at + 2) & SKIPPED) !== 0
    at += isExtended ? 4 : 2
    let shared = 0
    if (version === 4) {
      const [dropped, next] = lengthAt(index, at)
      shared = before.length - dropped
      at = next
    }
    const end = index.indexOf(0, at)
    if (end === -1 || shared < 0 || shared + end - at > MAX_PATH) return null
    const name = Buffer.concat([before.subarray(0, shared), index.subarray(at, end)])
    // The length of the name, as far as it fits.
    if (name.length < 0xfff && name.length !== (flags & 0xfff)) return null
    found.set(name.toString('utf8'), (flags & ASSUMED_UNCHANGED) !== 0 || isSkipped)
    at = version === 4 ? end + 1 : start + (Math.floor((end - start) / 8) + 1) * 8
    before = name
  }
  return found
}

/** A number of any length, and where it ends. */
function lengthAt(index: Buffer, start: number): readonly [number, number] {
  let at = start
  let value = (index[at] ?? 0) & 0x7f
  while (((index[at] ?? 0) & 0x80) !== 0) {
    at += 1
    value = (value + 1) * 128 + ((index[at] ?? 0) & 0x7f)
  }
  return [value, at + 1]
}
