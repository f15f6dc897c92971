/**
 * The keys of a server: those that its user names, and the one that it makes itself and keeps in a
 * file.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { link, open, rm, writeFile } from 'node:fs/promises'
import type { BearerKey } from '../server/index.js'
import { CommandError, EXIT, UsageError } from './command-line.js'

/** Keys by the names of their holders; `auto`: one key, in a file that the server makes. */
export type Keys = { readonly [id: string]: BearerKey } | 'auto'

/**
 * Reads `auto`, or `alice=key,bob=key`; a key without a name belongs to `operator`.
 *
 * @param setting - its name for messages, which never have a part of the value
 */
export function readKeys(text: string, setting: string): Keys {
  if (text.trim() === 'auto') return 'auto'
  const keys: { [id: string]: string[] } = {}
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, id = 'operator', key = ''] = /^(?:([\w.-]+)=)?(.*)$/.exec(entry) ?? []
    if (key === '') throw new UsageError(`${setting} must be name=key pairs, separated by commas`)
    keys[id] = [...(keys[id] ?? []), key]
  }
  return Object.fromEntries(Object.entries(keys).map(([id, list]) => [id, { key: list }]))
}

/** The server's own key, and the file that keeps it. */
export interface OwnKey {
  readonly key: string
  readonly path: string
}

/**
 * Reads the server's own key, and makes it first if there is none.
 *
 * @throws {@link CommandError} for a file that others can change or read.
 */
export async function openOwnKey(path: string): Promise<OwnKey> {
  for (;;) {
    const key = await readOwnKey(path)
    if (key !== null) return { key, path }
    const draft = `${path}-${randomBytes(8).toString('hex')}`
    const content = `${randomBytes(32).toString('base64url')}\n`
    await writeFile(draft, content, { flag: 'wx', mode: 0o600, flush: true })
    try {
      // Fails when another process was first, whose key then counts.
      await link(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      await rm(draft)
    }
  }
}

/** Null when there is no file. */
async function readOwnKey(path: string): Promise<string | null> {
  const unsafe = (problem: string): CommandError => {
    const remedy = 'remove it, and the next start makes a new key'
    return new CommandError(`${path} ${problem}; ${remedy}`, EXIT.failed)
  }
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw unsafe(error.code === 'ELOOP' ? 'is a link' : `cannot be read (${error.code})`)
  })
  if (file === null) return null
  try {
    const problem = problemOfKeyFile(await file.stat())
    if (problem !== null) throw unsafe(problem)
    const key = (await file.readFile('utf8')).trim()
    if (!/^[\w-]{16,}$/.test(key)) throw unsafe('does not contain a key')
    return key
  } finally {
    await file.close()
  }
}

function problemOfKeyFile(stats: Stats): string | null {
  if (!stats.isFile() || stats.size > 1_000) return 'is not a file with a key'
  if (stats.uid !== process.getuid?.()) return 'belongs to another user'
  return (stats.mode & 0o077) === 0 ? null : 'is open to other users of this machine'
}
