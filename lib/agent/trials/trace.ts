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

import { NODE_TRACE } from './trace-node.js'
import { NODE_RUNNERS } from './trace-node-runners.js'
import { PYTHON_TRACE } from './trace-python.js'
import { MAX_PROCESS_BYTES, MAX_SOURCE_BYTES, MAX_TESTS, readProcesses } from './trace-records.js'
import { join as joined, type Trace } from './trace-tests.js'

export type { Trace, TracedTest } from './trace-tests.js'

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
  const fill = (source: string): string =>
    source
      .replaceAll('@HERE@', () => JSON.stringify(here))
      .replaceAll('@ROOTS@', () => JSON.stringify(roots))
      .replaceAll('@MAX_BYTES@', String(MAX_PROCESS_BYTES))
      .replaceAll('@MAX_SOURCE_BYTES@', String(MAX_SOURCE_BYTES))
      .replaceAll('@MAX_TESTS@', String(MAX_TESTS))
      .replaceAll('@MAX_NANOSECONDS@', String(MAX_NANOSECONDS))
  await mkdir(join(here, SOURCES), { mode: 0o700 })
  await mkdir(join(here, 'python'), { mode: 0o700 })
  await writeFile(join(here, 'trace.cjs'), fill(NODE_TRACE))
  await writeFile(join(here, 'runners.cjs'), NODE_RUNNERS)
  await writeFile(join(here, 'python/sitecustomize.py'), fill(PYTHON_TRACE))
  const path = join(here, 'trace.cjs')
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
