/**
 * Repairs a small project: `npm run demo`.
 *
 * Copies a project with planted bugs to a scratch folder, starts the service in this process, lets
 * a run make `node --test` pass with the model `builtin:repair` (no key, no network), prints its
 * progress, and ends with a diff of the changes.
 */
import { cpSync, mkdtempSync, readFileSync, readdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MemoryStore, diffText, escapeInvisible, type AgentEvent } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService, RunServiceClient } from 'runwright/server'

const source = fileURLToPath(new URL('./demo-project', import.meta.url))
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-demo-')))
cpSync(source, scratch, { recursive: true })
console.log(`project  ${scratch}\n`)

const service = await createRunService({
  engine: { store: new MemoryStore(), roots: [scratch], providers: [repairModel()] },
})

let achieved = false
try {
  await using runs = RunServiceClient.inProcess(service)
  const request = { goal: 'node-test', cwd: scratch, model_name: 'builtin:repair' }
  const { run_id, goal, model_name } = await runs.create(request)
  console.log(`run      ${run_id}, goal ${goal}, model ${model_name} (no language model)`)
  for await (const event of runs.events(run_id)) {
    const line = progress(event)
    if (line !== null) print(line)
  }
  const details = await runs.get(run_id)
  achieved = details.status === 'achieved'
  const { status, iteration, final_state } = details
  const times = iteration === 1 ? '1 iteration' : `${iteration} iterations`
  print(`\n${status} after ${times}: ${final_state.goal_reason}\n`)
} finally {
  await service.close({ graceMs: 0 })
}
print(changes(source, scratch) || 'nothing was changed')
console.log(`To see for yourself: cd ${scratch} && node --test`)
process.exitCode = achieved ? 0 : 1

/** What a model, a command or a file contains is shown, and does not control the terminal. */
function print(text: string): void {
  console.log(escapeInvisible(text))
}

/** What came of the patches of one call. */
function tried(output: string): string {
  const [, count, passed] = /^(\d+ patch(?:es)?) tried, (\d+) with exit code 0/.exec(output) ?? []
  return count === undefined ? 'no patch: the command ran as it is' : `${count}: ${passed} passed`
}

/** A line about an event, or null for events that are not shown. */
function progress(event: AgentEvent): string | null {
  switch (event.kind) {
    case 'step_start':
      return event.payload.node === 'plan' ? `\niteration ${event.iteration}` : null
    case 'tool_call':
      // Many patches are tried in one call: the result says how many passed.
      if (event.payload.tool === 'try_patches') return null
      return `  ${event.payload.tool.padEnd(10)} ${brief(event.payload.args)}`
    case 'tool_result': {
      const { exit_code: code, output, tool } = event.payload
      return tool === 'try_patches' && code === 0 ? `  ${tool.padEnd(10)} ${tried(output)}` : null
    }
    case 'goal_check': {
      const { achieved: met, counts, reason, duration_ms } = event.payload
      const tests = counts === null ? '' : `${counts.passed}/${counts.total} pass, `
      return `  check      ${met ? 'met' : 'not met'}: ${reason} (${tests}${duration_ms} ms)`
    }
    case 'error':
      return `  error      ${event.payload.message}`
    default:
      return null
  }
}

/** The most telling argument of a call, on one line. */
function brief(args: { readonly [name: string]: unknown }): string {
  const { path, command, old_text: before, new_text: after } = args
  const edit = before === undefined ? '' : `: ${oneLine(before)} → ${oneLine(after)}`
  return `${String(path ?? command ?? JSON.stringify(args))}${edit}`.slice(0, 110)
}

function oneLine(text: unknown): string {
  return String(text).trim().replaceAll(/\s+/g, ' ').slice(0, 60)
}

/** A unified diff of all files of two folders. */
function changes(before: string, after: string): string {
  const files = readdirSync(before, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return files
    .map((entry) => join(entry.parentPath, entry.name).slice(before.length + 1))
    .map((path) => {
      const [old, now] = [before, after].map((root) => readFileSync(join(root, path), 'utf8'))
      if (old === undefined || now === undefined || old === now) return ''
      return diffText(old, now, { before: `a/${path}`, after: `b/${path}` }).diff
    })
    .join('')
}
