import type { JsonObject } from '../internal/json.js'
import type { PlannedCall } from './conversation.js'

/** A change to one file; `oldText` must occur exactly once in it. */
export interface SmallEdit {
  readonly path: string
  readonly oldText: string
  readonly newText: string
}

export function edit(change: SmallEdit): PlannedCall {
  return { tool: 'edit_file', args: argumentsOf(change) }
}

/** From a line on. */
export function read(path: string, offset = 1): PlannedCall {
  return { tool: 'read_file', args: { path, ...(offset > 1 && { offset }) } }
}

/** Runs a command without any patch and with each of some, which may have several edits. */
export function tryPatches(
  command: string,
  patches: readonly (readonly SmallEdit[])[],
  { watch = false }: { readonly watch?: boolean } = {},
): PlannedCall {
  return {
    tool: 'try_patches',
    args: {
      command,
      patches: patches.map((edits) => ({ edits: edits.map(argumentsOf) })),
      ...(watch && { watch }),
    },
  }
}

function argumentsOf({ path, oldText, newText }: SmallEdit): JsonObject {
  return { path, old_text: oldText, new_text: newText }
}
