/**
 * Details of failed tests: a message, and the innermost place of the project on the stack.
 * Reporters write them for models and people; they decide nothing.
 *
 * @module
 */
import { storableText } from '../../../internal/text.js'
import { redactor } from '../../redaction/redactor.js'

/** A test that failed. */
export interface FailedTest {
  readonly name: string
  /** Empty if the runner's report has none. */
  readonly message: string
  /** `src/a.js:12`; null if no file of the project is known. */
  readonly at: string | null
}

/** The details of one failed test, without its name. */
export interface FailureDetails {
  readonly message: string
  readonly at: string | null
}

/** Failing tests of a report that are kept. */
export const MAX_FAILED = 100
/** Characters of a message; reporters cut it themselves. */
const MAX_MESSAGE = 2_000
const MAX_PLACE = 500
/** Characters of a message that is shown, and of all failing tests. */
const MAX_SHOWN_MESSAGE = 600
const MAX_SHOWN = 4_000

export const NO_DETAILS: FailureDetails = { message: '', at: null }

/** The details at the end of a report's line: a message, a path and a line number, or nothing. */
export function detailsOf(value: unknown): FailureDetails {
  if (!Array.isArray(value)) return NO_DETAILS
  const [message, file, line] = value as unknown[]
  const isPlace = typeof file === 'string' && typeof line === 'number'
  return {
    message: typeof message === 'string' ? shown(message, MAX_MESSAGE) : '',
    at: isPlace ? shown(`${file}:${line}`, MAX_PLACE) : null,
  }
}

function shown(text: string, limit: number): string {
  return storableText(redactor.text(text.slice(0, limit)).trim())
}

/**
 * The first failing tests, as far as they fit: for the model, before the output of the command.
 *
 * @param count how many tests fail; not all of them need be in `failed`
 */
export function listFailed(failed: readonly FailedTest[], count: number): string {
  if (failed.length === 0) return ''
  let text = 'Failing tests:\n'
  let listed = 0
  for (const { name, message, at } of failed) {
    const isLong = message.length > MAX_SHOWN_MESSAGE
    const part = isLong ? `${message.slice(0, MAX_SHOWN_MESSAGE)}…` : message
    const lines = [...(part === '' ? [] : part.split('\n')), ...(at === null ? [] : [`at ${at}`])]
    const entry = [`- ${name}`, ...lines.map((line) => `    ${line}`)].join('\n')
    if (text.length + entry.length > MAX_SHOWN) break
    text += `${entry}\n`
    listed += 1
  }
  const more = count - listed
  return `${text}${more > 0 ? `- and ${more} more\n` : ''}\n`
}

/**
 * JavaScript source of `failureOf(error, root)`, which gives `[message, file, line]`; `error` is
 * one, or the text of one with its stack. Expects `relative`, `resolve` and `fileURLToPath`.
 */
export const FAILURE_OF: string = String.raw`
const FRAME = /^at (?:[^(]*\(|async )?([^()]*):(\d+):\d+\)?$/

function failureOf(error, root) {
  try {
    const message = typeof error === 'string' ? '' : String(error?.message ?? error ?? '')
    const stack = String(typeof error === 'string' ? error : (error?.stack ?? ''))
    const lines = stack.slice(0, 20000).split('\n')
    const first = lines.findIndex((line) => /^\s+at /.test(line))
    const head = (first < 0 ? lines : lines.slice(0, first)).join('\n')
    const text = (head.includes(message) ? head : message).replace(/\x1b\[[\d;]*m/g, '')
    for (const line of first < 0 ? [] : lines.slice(first)) {
      const [, place, number] = FRAME.exec(line.trim().slice(0, 1000)) ?? []
      if (place === undefined || /^(node:|<)/.test(place)) continue
      // Mocha shows paths relative to its folder.
      const path = place.startsWith('file:') ? fileURLToPath(place) : resolve(place)
      const file = relative(root, path)
      if (file.startsWith('../') || /(^|\/)node_modules\//.test(file)) continue
      return [text.slice(0, 2000), file, Number(number)]
    }
    return [text.slice(0, 2000)]
  } catch {
    return []
  }
}
`

/**
 * Python source of `_failure(message, places)`, with `places` as (path, line), innermost first.
 * Expects `ROOT` and the module os.
 */
export const PYTHON_FAILURE: string = String.raw`
def _failure(message, places):
    try:
        for path, line in places:
            path = os.path.relpath(os.path.realpath(path), ROOT).replace(os.sep, '/')
            if not path.startswith('../') and 'site-packages' not in path.split('/'):
                return [str(message)[:2000], path, int(line)]
        return [str(message)[:2000]]
    except BaseException:
        return []
`
