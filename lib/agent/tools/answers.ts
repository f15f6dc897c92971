import { describeError } from '../../internal/errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { ToolContext, ToolOutput } from '../tool.js'

/** Most bytes of output that a tool returns. */
export const MAX_TOOL_OUTPUT_BYTES: number = 64 * 1024

/** The output of a tool that succeeded. */
export function answer(output: string): ToolOutput {
  return { output, exitCode: 0 }
}

/** The output of a tool that failed: tells the model what went wrong and what to do. */
export function refusal(message: string): ToolOutput {
  return { output: message, exitCode: 1 }
}

/**
 * Runs a tool's work; an exception becomes a refusal, unless the call was aborted or the machine is
 * at fault.
 */
export async function answering(
  context: ToolContext,
  work: () => Promise<ToolOutput>,
): Promise<ToolOutput> {
  try {
    return await work()
  } catch (error) {
    context.signal.throwIfAborted()
    throwIfExhausted(error)
    return refusal(describeError(error))
  }
}
