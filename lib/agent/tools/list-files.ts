import { headAndTail } from '../output.js'
import type { Tool } from '../tool.js'
import { answer, answering, MAX_TOOL_OUTPUT_BYTES, showPath } from './answers.js'
import { defineTool } from './define.js'

const MAX_ENTRIES = 1_000

/** `list_files`: the entries of a folder. */
export const listFilesTool: Tool = defineTool({
  name: 'list_files',
  description:
    'Lists a folder, one path per line, relative to the working directory; folders end in "/". ' +
    '.git and node_modules are left out, links are not followed. At most 1000 lines.',
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'The folder. Default: the working directory.' },
      recursive: { type: 'boolean', description: 'Everything below as well. Default: false.' },
    },
    additionalProperties: false,
  },
  effect: 'read',
  async execute({ path = '.', recursive = false }, context) {
    return await answering(context, async () => {
      const entries = await context.workspace.list(path, { recursive, limit: MAX_ENTRIES + 1 })
      if (entries.length === 0) return answer('(empty)')
      const lines = entries
        .slice(0, MAX_ENTRIES)
        .map((entry) => `${showPath(entry.path)}${entry.type === 'directory' ? '/' : ''}`)
      if (entries.length > MAX_ENTRIES) {
        lines.push(`[… more than ${MAX_ENTRIES} entries; list a subfolder …]`)
      }
      return answer(headAndTail(lines.join('\n'), MAX_TOOL_OUTPUT_BYTES))
    })
  },
})
