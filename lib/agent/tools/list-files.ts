import { showPath } from '../../internal/text.js'
import { headAndTail } from '../output.js'
import { answer, answering, MAX_TOOL_OUTPUT_BYTES } from './answers.js'
import type { Tool } from '../tool.js'
import { defineTool } from './define.js'
import { PassedOver } from './passed-over.js'

const MAX_ENTRIES = 1_000

/** `list_files`: the entries of a folder. */
export const listFilesTool: Tool = defineTool({
  name: 'list_files',
  description:
    'Lists a folder, one path per line, relative to the working directory; folders end in "/". ' +
    'Dependencies (node_modules, .venv) and caches are passed over, as the last line then says; ' +
    'give such a folder as path to list it. .git is left out, links are not followed. At most ' +
    '1000 lines.',
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'The folder. Default: the working directory.' },
      recursive: { type: 'boolean', description: 'Everything below as well. Default: false.' },
    },
    additionalProperties: false,
  },
  effect: 'read',
  needsFolder: true,
  async execute({ path = '.', recursive = false }, context) {
    return await answering(context, async () => {
      const passedOver = new PassedOver()
      const entries = await context.workspace.list(path, {
        recursive,
        limit: MAX_ENTRIES + 1,
        onPassedOver: passedOver.add,
      })
      const lines = entries
        .slice(0, MAX_ENTRIES)
        .map((entry) => `${showPath(entry.path)}${entry.type === 'directory' ? '/' : ''}`)
      if (entries.length === 0) lines.push('(empty)')
      if (entries.length > MAX_ENTRIES) {
        lines.push(`[… more than ${MAX_ENTRIES} entries; list a subfolder …]`)
      }
      lines.push(...passedOver.notes())
      return answer(headAndTail(lines.join('\n'), MAX_TOOL_OUTPUT_BYTES))
    })
  },
})
