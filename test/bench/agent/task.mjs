/**
 * The task that every contender runs: so many iterations of one model call that asks for one tool,
 * that tool, and an evaluation that says "not yet". The model is a script in this process: what is
 * measured is what is around it.
 */

/** What the model is asked to do. */
export const PROMPT = 'Look up every key until the goal is met.'

/** The one tool: its name and the schema of its arguments. */
export const TOOL = {
  name: 'lookup',
  description: 'Gives the value of a key.',
  parameters: {
    type: 'object',
    properties: { key: { type: 'string' } },
    required: ['key'],
    additionalProperties: false,
  },
}

/** What the model says in an iteration, 1 for the first. */
export function modelTurn(iteration) {
  return {
    text: `Looking at key ${iteration}.`,
    callId: `call_${iteration}`,
    args: { key: `key-${iteration}` },
  }
}

/** Tokens of each model call. */
export const TOKENS = { input: 100, output: 20 }

/** Does what the tool does. */
export function lookup({ key }) {
  return `the value of ${key}`
}

/** One run of the task: counts iterations, and notes when the first model call came. */
export class Run {
  /** When the first model call came, in milliseconds of this process. */
  began = 0
  iterations = 0
  tools = 0
  #length

  constructor(length) {
    this.#length = length
  }

  /** The model's next turn. */
  turn() {
    this.began ||= performance.now()
    this.iterations += 1
    return modelTurn(this.iterations)
  }

  /** The tool's answer. */
  use(args) {
    this.tools += 1
    return lookup(args)
  }

  /** Evaluates an iteration: is the goal met, or the bound reached? */
  get isOver() {
    return this.iterations >= this.#length
  }

  /** @throws when the contender did not do the whole task. */
  check() {
    if (this.iterations === this.#length && this.tools === this.#length) return
    throw new Error(
      `${this.iterations} iterations and ${this.tools} tool calls instead of ${this.#length}`,
    )
  }
}

/** The number in the middle. @param {readonly number[]} numbers */
export function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
