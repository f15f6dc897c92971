import { PROMPT } from '../task.mjs'

/** The floor: a plain loop. */
export async function bareLoop() {
  return {
    async run(task) {
      const messages = [{ role: 'user', content: PROMPT }]
      do {
        const { text, callId, args } = await complete(task, messages)
        messages.push({ role: 'assistant', content: text, callId, args })
        messages.push({ role: 'tool', callId, content: await execute(task, args) })
      } while (!task.isOver)
    },
  }
}

async function complete(task) {
  return task.turn()
}

async function execute(task, args) {
  return task.use(args)
}
