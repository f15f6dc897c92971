import type { Tool } from '../tool.js'
import { bashTool } from './bash.js'
import { editFileTool } from './edit-file.js'
import { listFilesTool } from './list-files.js'
import { readFileTool } from './read-file.js'
import { searchFilesTool } from './search-files.js'
import { updatePlanTool } from './update-plan.js'
import { writeFileTool } from './write-file.js'

/** The tools that every run has: a shell, the files of the workspace, and a plan. */
export function builtinTools(): readonly Tool[] {
  return [
    bashTool, readFileTool, writeFileTool, editFileTool, listFilesTool, searchFilesTool,
    updatePlanTool,
  ]
}
