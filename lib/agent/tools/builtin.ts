import type { JsonObject } from '../../internal/json.js'
import type { Tool } from '../tool.js'
import { bashTool } from './bash.js'
import type { CommandOfGoal, ShippedTool } from './define.js'
import { delegateTool } from './delegate.js'
import { editFileTool } from './edit-file.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { searchFilesTool } from './search-files.js'
import { tryPatchesTool } from './try-patches.js'
import { updatePlanTool } from './update-plan.js'
import { writeFileTool } from './write-file.js'

/** The tools that every run has: a shell, the files of the workspace, trials, and a plan. */
export function builtinTools(): readonly ShippedTool[] {
  return [
    bashTool, readFileTool, writeFileTool, editFileTool, listFilesTool, searchFilesTool,
    tryPatchesTool, updatePlanTool,
  ]
}

/** Is a tool of no use without a folder? Those of the host and of MCP servers decide themselves. */
export function needsFolder(tool: Tool): boolean {
  return shippedOf(tool) !== undefined
}

/**
 * The command lines of a model that a call would run. What tools of the host and of MCP servers do
 * with their arguments is not known here.
 */
export function commandsOf(
  tool: Tool,
  args: JsonObject,
  commandOfGoal: CommandOfGoal,
): readonly string[] {
  return shippedOf(tool)?.commands(args, commandOfGoal) ?? []
}

function shippedOf(tool: Tool): ShippedTool | undefined {
  return [...builtinTools(), delegateTool].find((shipped) => shipped === tool)
}
