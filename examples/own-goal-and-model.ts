/** Your own goal, checked by a command, and your own model, which is a program. */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  commandGoal,
  MemoryStore,
  NO_USAGE,
  RunEngine,
  type AgentEvent,
  type GoalDefinition,
  type Model,
  type ModelProvider,
} from 'runwright/agent'

/** Met when the lines of a file are sorted. */
const sorted: GoalDefinition = {
  name: 'sorted',
  description: 'The lines of a file are sorted.',
  usage: 'sorted: names.txt',
  resolve: (cwd, file) => commandGoal({ name: 'sorted', command: `sort --check '${file}'` }, cwd),
}

/** Swaps two adjacent lines in each iteration. */
const swapper: Model = {
  name: 'local:swapper',
  isLanguageModel: false,
  contextWindow: null,
  prices: { input: 0, output: 0, as_of: '2026-11-01' },
  async complete({ messages }) {
    const last = messages.at(-1)
    const call_id = `call-${messages.length}`
    const answer = (
      text: string,
      tool?: string,
      args = {},
    ): Awaited<ReturnType<Model['complete']>> => ({
      message: {
        role: 'assistant',
        text,
        calls: tool === undefined ? [] : [{ call_id, tool, args }],
      },
      reasoning: '',
      usage: NO_USAGE,
      stop: tool === undefined ? 'end' : 'tool_calls',
    })
    if (last?.role !== 'tool') {
      return answer('Reading the file.', 'bash', { command: 'cat names.txt' })
    }
    if (last.tool !== 'bash') return answer('One swap done.')
    const lines = last.output.trim().split('\n')
    const at = lines.findIndex((line, index) => index > 0 && line < lines[index - 1]!)
    if (at < 0) return answer('Nothing to swap.')
    const [first = '', second = ''] = [lines[at - 1], lines[at]]
    lines.splice(at - 1, 2, second, first)
    return answer(`Swapping ${first} and ${second}.`, 'write_file', {
      path: 'names.txt',
      content: `${lines.join('\n')}\n`,
    })
  },
}
const local: ModelProvider = {
  id: 'local',
  description: 'our own programs',
  isLanguageModel: false,
  suggestions: ['swapper'],
  create: () => swapper,
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-example-')))
writeFileSync(join(folder, 'names.txt'), 'cleo\nann\nbob\n')
const engine = await RunEngine.open({
  store: new MemoryStore(),
  roots: [folder],
  goals: [sorted],
  providers: [local],
  defaultModel: 'local:swapper',
})
try {
  const { details } = await engine.create({ goal: 'sorted: names.txt', max_iterations: 5 })
  for await (const events of await engine.subscribe(details.run_id)) {
    for (const { json } of events) {
      const event = JSON.parse(json) as AgentEvent
      if (event.kind === 'model_turn') console.log(`${event.iteration}  ${event.payload.text}`)
      if (event.kind === 'goal_check') console.log(`   check: ${event.payload.reason}`)
    }
  }
  console.log((await engine.get(details.run_id)).status)
} finally {
  await engine.close()
  rmSync(folder, { recursive: true })
}
