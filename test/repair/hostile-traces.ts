import type { TestContext } from 'node:test'
import { readTrace, type Trace } from '../../lib/repair/trace/trace.js'
import { put } from '../agent/goals/support.js'
import { privateFolder } from './trace-support.js'

export const NAME: string = 'a'.repeat(64)
export const SOURCE: string = `sources/${NAME}`
export const HEAD: readonly unknown[] = ['p', 10, 1, 0, 100, 'test.js']

export function text(records: readonly unknown[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('')
}

/** The trace of these records of one process, with a text of two lines. */
export async function traceOf(
  t: TestContext,
  records: readonly unknown[],
  source = '\none()\ntwo()\n',
): Promise<Trace> {
  const folder = await privateFolder(t)
  await put(folder, { 'trace-1-10-0.jsonl': text([HEAD, ...records]), [SOURCE]: source })
  return readTrace(folder)
}

export const SCRIPT: readonly unknown[] = ['s', 0, 'src/a.js', NAME]
export const RAN: readonly unknown[] = ['r', 0, 0, [0, 12, 1, 6, 12, 0]]
export const TEST: readonly unknown[] = ['t', 0, 'test.js > one', 110]
