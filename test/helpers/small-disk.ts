import { spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { programAt } from './programs.js'

const MOUNT = 'mount -t tmpfs -o size=1m none /mnt'

/** Why {@link runOnSmallDisk} cannot work here; undefined when it can. */
export function noSmallDisk(): string | undefined {
  if (spawnSync('unshare', ['-Urm', 'sh', '-c', MOUNT]).status === 0) return undefined
  return 'this kernel does not let ordinary users mount a file system (unshare -Urm)'
}

/** Runs a program of this repository with `/mnt`, a file system of one megabyte, and `args`. */
export function runOnSmallDisk(path: string, ...args: string[]): SpawnSyncReturns<string> {
  const words = [process.execPath, ...programAt(path), '/mnt', ...args]
  const script = `${MOUNT} && exec ${words.map((word) => `'${word}'`).join(' ')}`
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  return spawnSync('unshare', ['-Urm', 'sh', '-c', script], { encoding: 'utf8', cwd })
}
