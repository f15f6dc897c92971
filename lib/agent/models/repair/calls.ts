import type { PlannedCall } from './conversation.js'

/** `oldText` must occur exactly once in the file. */
export function edit(path: string, oldText: string, newText: string): PlannedCall {
  return { tool: 'edit_file', args: { path, old_text: oldText, new_text: newText } }
}

/** From a line on. */
export function read(path: string, offset = 1): PlannedCall {
  return { tool: 'read_file', args: { path, ...(offset > 1 && { offset }) } }
}

/** A change to one file; `oldText` must occur exactly once in it. */
interface SmallPatch {
  readonly path: string
  readonly oldText: string
  readonly newText: string
}

/** Runs a command without any patch and with each of some. */
export function tryPatches(
  command: string,
  patches: readonly SmallPatch[],
  { watch = false }: { readonly watch?: boolean } = {},
): PlannedCall {
  return {
    tool: 'try_patches',
    args: {
      command,
      patches: patches.map(({ path, oldText, newText }) => ({
        edits: [{ path, old_text: oldText, new_text: newText }],
      })),
      ...(watch && { watch }),
    },
  }
}
