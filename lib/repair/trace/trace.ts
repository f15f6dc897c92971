/**
 * Which lines of a project's sources each of its tests runs, whatever starts them.
 *
 * 1. {@link watch} places recorders in a private folder and tells the environment variables which
 *    load them into every Node and Python process of a command. They neither print nor change what
 *    tests do, and record synchronously: a process may be killed.
 * 2. {@link readTrace} reads what they wrote. It trusts none of it: the project could have written
 *    it. It opens regular files of the folder only, and skips what makes no sense.
 * 3. Tests have the names that reports give them: file, suites and title, joined by ` > `. What a
 *    process runs that tells no tests apart is one test with the name of its script, unless it
 *    was started by a test, to which it then belongs.
 *
 * Nothing is recorded of processes in which V8's counts are taken by somebody else (c8, coverage of
 * a runner), which taking would spoil.
 *
 * @module
 */
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { RECORDER, RUNNERS, SITECUSTOMIZE } from './programs.js'
import { MAX_PROCESS_BYTES, MAX_SOURCE_BYTES, MAX_TESTS, readProcesses } from './records.js'
import { join as joined, type Trace } from './tests.js'

export type { Trace, TracedTest } from './tests.js'

/** Variables that a command's environment has already, and that are added to. */
export interface WatchedEnvironment {
  readonly NODE_OPTIONS?: string | undefined
  readonly PYTHONPATH?: string | undefined
}

/** Time that a process may spend on telling tests apart. */
const MAX_NANOSECONDS = 3e9
const SOURCES = 'sources'

/**
 * Makes recorders in `folder`, an empty private folder outside of the project. Returns the
 * environment variables that make a command record what it runs of `project`.
 */
export async function watch(
  folder: string,
  project: string,
  given: WatchedEnvironment = {},
): Promise<Readonly<Record<string, string>>> {
  const here = await realpath(folder)
  const roots = [...new Set([resolve(project), await realpath(project)])]
  await mkdir(join(here, SOURCES), { mode: 0o700 })
  await mkdir(join(here, 'python'), { mode: 0o700 })
  const settings = {
    ROOTS: roots, MAX_BYTES: MAX_PROCESS_BYTES, MAX_SOURCE_BYTES, MAX_TESTS, MAX_NANOSECONDS,
  }
  await writeFile(join(here, 'settings.json'), JSON.stringify(settings))
  await writeFile(join(here, 'recorder.cjs'), RECORDER)
  await writeFile(join(here, 'runners.cjs'), RUNNERS)
  await writeFile(join(here, 'python/sitecustomize.py'), SITECUSTOMIZE)
  const path = join(here, 'recorder.cjs')
  // Node splits the variable at spaces, and takes quotes off.
  const option = `--require=${/[\s"\\]/.test(path) ? JSON.stringify(path) : path}`
  return {
    NODE_OPTIONS: [given.NODE_OPTIONS, option].filter(Boolean).join(' '),
    PYTHONPATH: [join(here, 'python'), given.PYTHONPATH].filter(Boolean).join(':'),
  }
}

/** Reads what the recorders in `folder` wrote; an empty trace where there is nothing. */
export async function readTrace(folder: string): Promise<Trace> {
  return joined(await readProcesses(folder, join(folder, SOURCES)))
}
