import { comparedIn, type Failure, MAX_FRAMES, parseFrames } from './report.js'

/** Stands for the tests of a runner that ended before it reported any; named like a file's. */
export const LOADING = 'ERROR loading the tests'

/** Lines that a filter has to keep for {@link loadFailure}, as an extended regular expression. */
export const ERROR_LINE =
  '^[^A-Za-z]{0,6}(Exception during run: |ERROR: )?[A-Za-z]*Error( \\[[A-Z_]+\\])?: '
const STARTS = new RegExp(ERROR_LINE, 'm')

/** The error with which a runner ended that reported no test at all; null when it shows none. */
export function loadFailure(output: string): Failure | null {
  const found = STARTS.exec(output)
  if (found === null) return null
  const lines = output.slice(found.index).split('\n', 200)
  const stack = lines.findIndex((line) => /^ +at /.test(line))
  const said = lines.slice(0, stack < 0 ? 10 : stack)
  const message = said.join('\n').replace(/^\s*(?:Exception during run: )?/, '')
  // Node shows the place of a mistake in syntax above the error.
  const above = output.slice(Math.max(0, found.index - 2_000), found.index)
  const frames = parseFrames(`${above}\n${lines.slice(said.length).join('\n')}`)
  return {
    name: LOADING,
    message,
    frames: frames.filter(({ file }) => !file.includes('node_modules/')).slice(0, MAX_FRAMES),
    ...comparedIn(message),
  }
}
