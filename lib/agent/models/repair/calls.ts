import type { PlannedCall } from './conversation.js'

/** Runs a shell line. */
export function bash(command: string, timeout: number): PlannedCall {
  return { tool: 'bash', args: { command, timeout_ms: timeout } }
}

/** Replaces a text that occurs once in a file. */
export function edit(path: string, oldText: string, newText: string): PlannedCall {
  return { tool: 'edit_file', args: { path, old_text: oldText, new_text: newText } }
}

/** Reads a file. */
export function read(path: string): PlannedCall {
  return { tool: 'read_file', args: { path } }
}
