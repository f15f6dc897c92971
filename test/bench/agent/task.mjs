/**
 * The task that every contender runs: iterations of one model call that requests one tool, that
 * tool, and an evaluation that returns "not yet". The model is a script in this process, so that
 * only the framework around it is measured.
 */

export const PROMPT = 'Look up every key until the goal is met.'

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

/** The model's turn in an iteration, counted from 1. */
export function modelTurn(iteration) {
  return {
    text: `Looking at key ${iteration}.`,
    callId: `call_${iteration}`,
    args: { key: `key-${iteration}` },
  }
}

/** Tokens of each model call. */
export const TOKENS = { input: 100, output: 20 }

/** The result of the tool. */
export function lookup({ key }) {
  return `the value of ${key}`
}

/** One run of the task: counts iterations and tool calls. */
export class Run {
  /** `performance.now()` at the first model call. */
  began = 0
  iterations = 0
  tools = 0
  #length

  constructor(length) {
    this.#length = length
  }

  /** Called once per model call. */
  turn() {
    this.began ||= performance.now()
    this.iterations += 1
    return modelTurn(this.iterations)
  }

  /** Called once per tool call; returns the tool's result. */
  use(args) {
    this.tools += 1
    return lookup(args)
  }

  /** The evaluation: true after the last iteration. */
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

/** The upper of two middle numbers for an even count. @param {readonly number[]} numbers */
export function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
