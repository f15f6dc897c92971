import assert from 'node:assert/strict'
import { defineTool, type JsonObject, type ToolContext } from 'runwright/agent'
import { payloads, runToEnd } from '../../../helpers/engine.js'
import { writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

export const PARAMETERS = { type: 'object', properties: {} } as const

/** A model that calls the tool `work` once; for the runs that it starts, one that writes a file. */
export const caller: Brain = (request, turn) => {
  const first = request.messages[0]
  const part = /Goal: write (\S+) (\S+)/.exec(first?.role === 'user' ? first.text : '')
  if (part !== null) return writes(`${part[1]}.txt`, `${part[2]}\n`)(request, turn)
  return turn === 0 ? { calls: [{ tool: 'work', args: {} }] } : { text: 'done' }
}

export const part = (file: string, word: string): { goal: string; check: string } => ({
  goal: `write ${file} ${word}`,
  check: `grep -q ${word} ${file}.txt`,
})

type Work = (context: ToolContext) => Promise<string>

export async function run(
  t: Parameters<typeof openFamily>[0],
  work: Work,
  request: JsonObject = {},
  delegation: JsonObject = { delegation: { depth: 1, children: 4 } },
): Promise<Awaited<ReturnType<typeof runToEnd>> & { cwd: string; output: string }> {
  const tool = defineTool({
    name: 'work', description: 'works', parameters: PARAMETERS,
    execute: (_, context) => work(context),
  })
  const { engine, cwd } = await openFamily(
    t, { m: caller }, { tools: [tool], maxConcurrentRuns: 1 },
  )
  writeFiles(cwd, { 'start.txt': 'start\n' })
  const ended = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, ...delegation, ...request,
  })
  const [result] = payloads(ended.events, 'tool_result')
  const { runs } = await engine.list()
  for (const { status, run_id } of runs) assert.match(status, /achieved|failed|aborted/, run_id)
  return { ...ended, cwd, output: result?.output ?? '' }
}
