import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { unreadable } from '../../exhaustion.js'
import { languageOf } from './file-kinds.js'
import type { TextReader } from './read-texts.js'

const SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']
const PATH_VALUE =
  /\bPATH[ \t]*[:?+]?=[ \t]*(?:"([^"\n]{1,2000})"|'([^'\n]{1,2000})'|(\S{1,2000}))/g
const MAX_TEXTS = 200
const MAX_FOLDERS = 100

/**
 * Folders of the workspace in which a command, or a script of the check, looks for programs. A text
 * may name them from anywhere (`"$(dirname "$0")/bin"`), so the end of a path is enough.
 */
export async function programFolders(
  command: string,
  baseline: Iterable<string>,
  texts: Pick<TextReader, 'read'>,
): Promise<readonly string[]> {
  const scripts = [...baseline].filter((path) => /^(?:shell|make)$/.test(languageOf(path)))
  const found = new Set<string>()
  const read = scripts.slice(0, MAX_TEXTS).map(async (path) => await texts.read(path))
  for (const text of [command, ...(await Promise.all(read))]) {
    for (const [, double, single, plain] of (text ?? '').matchAll(PATH_VALUE)) {
      for (const entry of (double ?? single ?? plain ?? '').split(':')) {
        const path = posix.normalize(entry.replace(/^.*[$)}]\w*(?=\/|$)/, '.').replaceAll('"', ''))
        if (/^\.?$/.test(entry) || /^\$\{?PWD\}?$/.test(entry)) found.add('.')
        else if (path !== '.' && !path.startsWith('/')) found.add(path.replace(/^(?:\.\.\/)+/, ''))
      }
    }
  }
  return [...found].slice(0, MAX_FOLDERS).map((path) => path.replace(/\/$/, ''))
}

/** Would this file run in place of a program of the system that has its name? */
export async function shadowsProgram(path: string, folders: readonly string[]): Promise<boolean> {
  const folder = posix.dirname(path)
  if (!folders.some((one) => folder === one || folder.endsWith(`/${one}`))) return false
  for (const place of SYSTEM) {
    const stats = await lstat(join(place, posix.basename(path))).catch(unreadable)
    if (stats !== null && !stats.isDirectory()) return true
  }
  return false
}
