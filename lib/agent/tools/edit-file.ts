import { showPath } from '../../internal/text.js'
import { hash } from '../../internal/hash.js'
import { unreadable } from '../exhaustion.js'
import type { Tool, ToolContext } from '../tool.js'
import type { TextEdit } from '../workspace-copy.js'
import { decodeText } from '../workspace/text.js'
import { answering, refusal } from './answers.js'
import { changePlan, verifyByHash } from './change-plan.js'
import { defineTool } from './define.js'
import { editedText, type EditedText } from './edited-text.js'

/** `edit_file`: replaces one piece of text in a file. */
export const editFileTool: Tool = defineTool({
  name: 'edit_file',
  description:
    'Replaces old_text with new_text in a file. old_text must be copied exactly from the file, ' +
    'white space included, and must occur only once, unless occurrence selects one.',
  parameters: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the working directory.', minLength: 1 },
      old_text: { type: 'string', description: 'The text to replace.', minLength: 1 },
      new_text: { type: 'string', description: 'The replacement; may be empty.' },
      occurrence: {
        type: 'integer',
        description: 'Which occurrence, counted from 1; 0 replaces all of them.',
        minimum: 0,
      },
    },
    required: ['path', 'old_text', 'new_text'],
    additionalProperties: false,
  },
  effect: 'idempotent',
  needsFolder: true,
  async plan(args, context) {
    const { before, after } = (await prepare(args, context).catch(unreadable)) ?? UNREADABLE
    return changePlan(hashOf(before), hashOf(after))
  },
  async verify({ path }, plan, context) {
    return await verifyByHash(path, plan, context)
  },
  async execute(args, context) {
    return await answering(context, async () => {
      const { after, problem, count } = await prepare(args, context)
      if (after === null) return refusal(problem)
      const change = await context.workspace.writeFile(args.path, after)
      const times = count === 1 ? '' : ` in ${count} places`
      const lines = `+${change.added_lines} -${change.removed_lines} lines`
      const output = `edited ${showPath(change.path)}${times}: ${lines}`
      return { output, exitCode: 0, changes: [change] }
    })
  },
})

function hashOf(text: string | null): string | null {
  return text === null ? null : hash('sha256', text)
}

const UNREADABLE: EditedText = { before: null, after: null, problem: '', count: 0 }

async function prepare(edit: TextEdit, context: ToolContext): Promise<EditedText> {
  return editedText(decodeText(await context.workspace.readFile(edit.path)), edit)
}
