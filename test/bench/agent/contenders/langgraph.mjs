import { PROMPT } from '../task.mjs'
import { peer } from '../../http/peer.mjs'

/**
 * The smallest graph for the task, with a node each for plan, act and evaluate. `checkpointer` is
 * one of LangGraph's, true for MemorySaver or false for none; `name` prefixes thread ids.
 */
export async function langGraph({ checkpointer, name = 'thread' }) {
  const { Annotation, END, MemorySaver, START, StateGraph } = await peer('@langchain/langgraph')
  const State = Annotation.Root({
    messages: Annotation({ reducer: (all, more) => all.concat(more), default: () => [] }),
    over: Annotation(),
  })
  let threads = 0
  return {
    async run(task, length) {
      const graph = new StateGraph(State)
        .addNode('plan', async () => {
          const { text, callId, args } = task.turn()
          return { messages: [{ role: 'assistant', content: text, callId, args }] }
        })
        .addNode('act', async ({ messages }) => {
          const { callId, args } = messages.at(-1)
          return { messages: [{ role: 'tool', callId, content: task.use(args) }] }
        })
        .addNode('evaluate', async () => ({ over: task.isOver }))
        .addEdge(START, 'plan')
        .addEdge('plan', 'act')
        .addEdge('act', 'evaluate')
        .addConditionalEdges('evaluate', ({ over }) => (over ? END : 'plan'))
        .compile(
          checkpointer
            ? { checkpointer: checkpointer === true ? new MemorySaver() : checkpointer }
            : {},
        )
      const input = { messages: [{ role: 'user', content: PROMPT }] }
      threads += 1
      await graph.invoke(input, {
        recursionLimit: 3 * length + 10,
        configurable: { thread_id: `${name}-${threads}` },
      })
    },
  }
}
