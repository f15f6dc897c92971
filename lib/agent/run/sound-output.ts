import type { ToolOutput } from '../tool.js'

/**
 * What a tool of the host has returned, read once.
 *
 * @throws TypeError that says what it should have returned.
 */
export function soundOutput(returned: unknown): ToolOutput {
  if (typeof returned !== 'object' || returned === null)
    throw wrong(`${returned === null ? 'null' : typeof returned}, not an object`)
  const { output, exitCode, changes, files } = returned as { [name in keyof ToolOutput]?: unknown }
  if (typeof output !== 'string') throw wrong('an object whose `output` is no string')
  if (!Number.isSafeInteger(exitCode)) throw wrong('an `exitCode` that is no whole number')
  if (changes !== undefined && !Array.isArray(changes)) throw wrong('`changes` that are no list')
  return {
    output,
    exitCode: exitCode as number,
    ...(changes !== undefined && { changes }),
    ...(files !== undefined && { files: files as ToolOutput['files'] }),
  }
}

function wrong(what: string): TypeError {
  const expected = 'a tool returns {output: string, exitCode: number}'
  return new TypeError(`it returned ${what}; ${expected}. What it did is done`)
}
