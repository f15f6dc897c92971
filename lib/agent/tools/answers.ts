import { isUtf8 } from 'node:buffer'
import type { ToolContext, ToolOutput } from '../tool.js'

/** Octets of output that a tool gives at most. */
export const MAX_TOOL_OUTPUT_BYTES: number = 64 * 1024

/** A success. */
export function answer(output: string): ToolOutput {
  return { output, exitCode: 0 }
}

/** A failure, told to the model: what went wrong and what to do. */
export function refusal(message: string): ToolOutput {
  return { output: message, exitCode: 1 }
}

/** Runs a tool's work; whatever it throws becomes a result, but for the caller's own abort. */
export async function answering(
  context: ToolContext,
  work: () => Promise<ToolOutput>,
): Promise<ToolOutput> {
  try {
    return await work()
  } catch (error) {
    context.signal.throwIfAborted()
    return refusal(error instanceof Error ? error.message : String(error))
  }
}

/** The content as text, or null when it is not UTF-8 text. */
export function textOf(content: Uint8Array): string | null {
  if (content.includes(0) || !isUtf8(content)) return null
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('utf8')
}

/** A path on one line: names with control characters are quoted. */
export function showPath(path: string): string {
  return /[\u0000-\u001f\u007f\u2028\u2029]/.test(path) ? JSON.stringify(path) : path
}
