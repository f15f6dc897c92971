import type { ModelTurn } from 'runwright/agent'
import type { Random } from './random.js'

/** A value nested `depth` levels deep, in arrays or objects. */
export function nested(depth: number, inArrays = false): unknown {
  let value: unknown = 'end'
  for (let i = 0; i < depth; i++) value = inArrays ? [value] : { a: value }
  return value
}

/** An id of the shape of a provider's key, which the redactor replaces. */
export const KEY_SHAPED = 'sk-proj-abcdefghijklmnopqrstuvwxyz012345'

const PROTOTYPE_NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
const NUMBERS = [1e999, -1e999, -0, NaN, 2 ** 53, 1e308, 5e-324]
const STRINGS = ['\ud800', 'a\udc00b', '\u0000', '\u2028', '', KEY_SHAPED, '\u202e']
/** What takes long to make is made once. */
const LONG = 'x'.repeat(3_000_000)
const WIDE = Array.from({ length: 300_000 }, () => 0)
const DEEP = [63, 64, 65, 66, 100, 5_000, 100_000].flatMap((depth) => [
  nested(depth),
  nested(depth, true),
])

function aString(random: Random): string {
  if (random.chance(0.3)) return random.pick(PROTOTYPE_NAMES)
  if (random.chance(0.05)) return LONG
  return random.pick([...STRINGS, 'call_1', '0', 'a'.repeat(10_000)])
}

function own(name: string, value: unknown): object {
  return Object.defineProperty({}, name, { value, enumerable: true, configurable: true })
}

function cycle(): object {
  const value: Record<string, unknown> = {}
  value['again'] = [value, value]
  return value
}

function throwing(): object {
  return {
    get path(): string {
      throw new Error('this getter throws')
    },
  }
}

/** Any value at all, most of them not what anybody would expect here. */
function anything(random: Random): unknown {
  return random.pick<() => unknown>([
    () => undefined,
    () => null,
    () => random.pick(NUMBERS),
    () => aString(random),
    () => random.pick(DEEP),
    () => own(random.pick(PROTOTYPE_NAMES), anything(random)),
    () => ({ [aString(random)]: anything(random) }),
    () => [anything(random), anything(random)],
    () => WIDE,
    () => ({ path: anything(random) }),
    () => ({ path: 'a.txt', content: anything(random) }),
    () => ({ path: 'a.txt', content: 'fine' }),
    () => cycle(),
    () => throwing(),
    () => 10n,
    () => Symbol('s'),
    () => () => 1,
    () => new Date(0),
    () => new Map([[1, 2]]),
    () => ({ toJSON: () => { throw new Error('toJSON throws') } }),
    () => new Proxy({}, { ownKeys: () => { throw new Error('ownKeys throws') } }),
    () => Object.create(null) as unknown,
    () => new Array(3),
  ])()
}

const TOOLS = ['list_files', 'read_file', 'write_file', 'edit_file', 'no_such_tool']

function aCall(random: Random): unknown {
  if (random.chance(0.1)) return anything(random)
  return {
    tool: random.chance(0.7) ? random.pick(TOOLS) : anything(random),
    args: random.chance(0.4) ? { path: 'a.txt', content: 'fine' } : anything(random),
    call_id: random.chance(0.3) ? random.pick(['same', 'call_1_0_1']) : anything(random),
    ...(random.chance(0.2) && { error: anything(random) }),
  }
}

function plainCall(): object {
  return { tool: 'no_such_tool', args: {}, call_id: 'same' }
}

function someCalls(random: Random): unknown {
  if (random.chance(0.05)) return anything(random)
  if (random.chance(0.03)) return Array.from({ length: random.pick([128, 129, 5_000]) }, plainCall)
  return Array.from({ length: random.integer(0, 4) }, () => aCall(random))
}

/** Throws or rejects with something that may be no error. */
export function hostileThrow(random: Random): unknown {
  const reason = anything(random)
  if (random.chance(0.5)) return Promise.reject(reason as Error)
  throw reason
}

/** A turn such as no adapter returns, but a host's own model may, or a provider may try to cause. */
export function hostileTurn(random: Random): ModelTurn {
  if (random.chance(0.03)) return anything(random) as ModelTurn
  const turn = {
    message: random.chance(0.03)
      ? anything(random)
      : {
          role: 'assistant',
          text: random.chance(0.7) ? 'text' : anything(random),
          calls: someCalls(random),
          ...(random.chance(0.4) && {
            parts: random.chance(0.2)
              ? anything(random)
              : { format: random.chance(0.8) ? 'x' : anything(random), value: anything(random) },
          }),
        },
    reasoning: random.chance(0.7) ? '' : anything(random),
    usage: random.chance(0.7)
      ? { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 }
      : random.chance(0.5)
        ? anything(random)
        : { input_tokens: anything(random), output_tokens: random.pick(NUMBERS) },
    stop: random.chance(0.7) ? 'tool_calls' : anything(random),
  }
  return turn as unknown as ModelTurn
}
