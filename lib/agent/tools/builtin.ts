import type { Tool } from '../tool.js'
import { bashTool } from './bash.js'
import { delegateTool } from './delegate.js'
import { editFileTool } from './edit-file.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { searchFilesTool } from './search-files.js'
import { tryPatchesTool } from './try-patches.js'
import { updatePlanTool } from './update-plan.js'
import { writeFileTool } from './write-file.js'

/** The tools that every run has: a shell, the files of the workspace, trials, and a plan. */
export function builtinTools(): readonly Tool[] {
  return [
    bashTool, readFileTool, writeFileTool, editFileTool, listFilesTool, searchFilesTool,
    tryPatchesTool, updatePlanTool,
  ]
}

/** Is a tool of no use without a folder? Those of the host and of MCP servers decide themselves. */
export function needsFolder(tool: Tool): boolean {
  return tool === delegateTool || builtinTools().includes(tool)
}
