/**
 * A process that hosts an engine with one run, for those who may have to kill it: its argument is
 * JSON. Prints the id of the run as soon as it begins, and what became of it as the last line.
 */
import { dirname } from 'node:path'
import { FileStore, RunEngine, type AgentEvent } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import type { HostOptions, HostResult, ToolCalled } from './hosted.js'

const { cwd, store, goal, limits, abortAfterMs, cancel } =
  JSON.parse(process.argv[2]!) as HostOptions
const engine = await RunEngine.open({
  store: new FileStore({ directory: store }), roots: [dirname(cwd)], providers: [repairModel()],
})
try {
  const runId = cancel ?? (await begin())
  if (cancel !== undefined) await engine.abort(runId).catch(() => undefined)
  console.log(JSON.stringify({ runId }))
  if (abortAfterMs !== undefined) {
    setTimeout(() => void engine.abort(runId).catch(() => undefined), abortAfterMs).unref()
  }
  console.log(JSON.stringify(await watched(runId)))
} finally {
  await engine.close()
}

async function begin(): Promise<string> {
  const { details } = await engine.create({
    goal, cwd, model_name: 'builtin:repair', max_iterations: 1000, ...limits,
  })
  return details.run_id
}

async function watched(runId: string): Promise<HostResult> {
  const calls: ToolCalled[] = []
  let said = ''
  let reason = ''
  let lastCheck = ''
  for await (const events of await engine.subscribe(runId)) {
    for (const { json } of events) {
      const { kind, payload } = JSON.parse(json) as AgentEvent
      if (kind === 'model_turn' && payload.text !== '') said = payload.text
      if (kind === 'tool_call') calls.push({ tool: payload.tool, args: payload.args })
      if (kind === 'run_end') reason = payload.reason
      if (kind === 'goal_check') lastCheck = payload.reason
    }
  }
  const { status, end_reason } = await engine.get(runId)
  return {
    runId, status, endReason: end_reason ?? 'none', reason, said, lastCheck,
    calls: calls.filter(({ tool }) => tool === 'edit_file' || tool === 'try_patches'),
  }
}
