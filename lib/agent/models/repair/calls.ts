import type { PlannedCall } from './conversation.js'

export function bash(command: string, timeout: number): PlannedCall {
  return { tool: 'bash', args: { command, timeout_ms: timeout } }
}

/** `oldText` must occur exactly once in the file. */
export function edit(path: string, oldText: string, newText: string): PlannedCall {
  return { tool: 'edit_file', args: { path, old_text: oldText, new_text: newText } }
}

export function read(path: string): PlannedCall {
  return { tool: 'read_file', args: { path } }
}
