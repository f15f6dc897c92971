import { showPath } from '../../internal/text.js'
import { hash } from '../../internal/hash.js'
import { answering } from './answers.js'
import { changePlan, hashOfFile, verifyByHash } from './change-plan.js'
import type { Tool } from '../tool.js'
import { defineTool } from './define.js'

/** `write_file`: creates a file or replaces its whole content. */
export const writeFileTool: Tool = defineTool({
  name: 'write_file',
  description:
    'Creates a file, or replaces the whole content of an existing one. Missing folders are ' +
    'created. To change a part of a file, use edit_file.',
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the working directory.', minLength: 1 },
      content: { type: 'string', description: 'The whole new content.' },
    },
    required: ['path', 'content'],
    additionalProperties: false,
  },
  effect: 'idempotent',
  needsFolder: true,
  async plan({ path, content }, context) {
    return changePlan(await hashOfFile(path, context), hash('sha256', content))
  },
  async verify({ path }, plan, context) {
    return await verifyByHash(path, plan, context)
  },
  async execute({ path, content }, context) {
    return await answering(context, async () => {
      const change = await context.workspace.writeFile(path, content)
      const done = change.change === 'created' ? 'created' : 'replaced'
      const output = `${done} ${showPath(change.path)}: ${Buffer.byteLength(content)} bytes`
      return { output, exitCode: 0, changes: [change] }
    })
  },
})
