import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { GoalError, InvalidRequestError, StoreError, type AgentError } from 'runwright/agent'
import { helpOf, readArguments, UsageError } from '../../lib/cli/command-line.js'
import { inOwnWords, requestOf, RUN } from '../../lib/cli/run.js'
import { SERVE } from '../../lib/cli/serve.js'
import { root } from '../helpers/markdown.js'

const guide = readFileSync(join(root, 'docs/command-line.md'), 'utf8')

/** The options that a part of the guide lists, each in a row of its table. */
function listedIn(heading: string): string[] {
  const part = guide.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  return [...part.matchAll(/^\| `--([\w-]+)/gm)].map(([, name]) => name!)
}

for (const [spec, heading] of [
  [SERVE, 'The server of a folder'],
  [RUN, 'One run in the terminal'],
] as const) {
  test(`help and guide name the same options of ${spec.usage}`, () => {
    const names = [...helpOf(spec).matchAll(/^  --([\w-]+)/gm)].map(([, name]) => name!)
    assert.deepEqual(names, Object.keys(spec.options))
    assert.deepEqual(listedIn(heading), names)
  })

  test(`the help of ${spec.usage} fits into 100 columns`, () => {
    assert.deepEqual(helpOf(spec).split('\n').filter((line) => line.length > 100), [])
  })
}

for (const [args, message] of [
  [['--attmpts', '2'], 'unknown option --attmpts; did you mean --attempts?'],
  [['--zzzzzz'], 'unknown option --zzzzzz; see --help'],
  [['-x'], 'unknown option -x; see --help'],
  [['--constructor'], 'unknown option --constructor; see --help'],
  [['--model'], '--model needs a value: --model <name>'],
  [['--model', '--json'], '--model needs a value: --model <name>'],
  [['--model='], '--model needs a value: --model <name>'],
  [['--json=yes'], '--json takes no value'],
  [
    ['--approve=sometimes'],
    '--approve must be one of writes, all, iterations, never, got sometimes',
  ],
] as const) {
  test(`run ${args.join(' ')} is refused: ${message}`, () => {
    assert.throws(() => readArguments(args, RUN), new UsageError(message))
  })
}

for (const [args, expected] of [
  [['goal', '--approve'], { approve: ['writes'], words: ['goal'] }],
  [['--approve', 'goal'], { approve: ['writes'], words: ['goal'] }],
  [['--approve', 'all', 'goal'], { approve: ['all'], words: ['goal'] }],
  [['--approve=iterations', 'goal'], { approve: ['iterations'], words: ['goal'] }],
  [['--model', 'a', '--model', 'b'], { model: ['a', 'b'], words: [] }],
  [['--', '--model'], { words: ['--model'] }],
  [['-h'], { help: [''], words: [] }],
] as const) {
  test(`run ${args.join(' ')} is read`, () => {
    const read = readArguments(args, RUN)
    const { words, ...options } = expected as Record<string, readonly string[]>
    assert.deepEqual(read.words, words)
    for (const [name, values] of Object.entries(options)) assert.deepEqual(read.all(name), values)
  })
}

/** Sets all that a request may have. */
const REQUESTS = ['writes', 'iterations'].map((approve) => {
  const words = ['x', '--check', 'a', '--isolated', '--attempts', '2', '--max-iterations', '3']
  const more = ['--setup', 'b', `--approve=${approve}`]
  return requestOf(readArguments([...words, ...more], RUN))
})

for (const field of new Set([...REQUESTS.flatMap(Object.keys), 'cwd', 'model_name'])) {
  test(`an error of the engine at ${field} names what was typed`, () => {
    const violations = ['', '/count'].map((rest) => {
      return { pointer: `/${field}${rest}`, detail: `is bad: see \`${field}\` and \`other\`` }
    })
    const { message, exitCode } = inOwnWords(new InvalidRequestError(violations), 'runwright')
    const said = /^(--[a-z-]+|the goal) is bad: see \1 and `other`; \1 is bad/
    const [, name] = said.exec(message) ?? []
    assert.ok(name !== undefined, message)
    assert.ok(name === 'the goal' || Object.hasOwn(RUN.options, name.slice(2)), name)
    assert.equal(exitCode, 2)
  })
}

for (const [error, expected] of [
  [new GoalError('not_verifiable', 'give `check`, a command'), 'give --check, a command'],
  [new GoalError('dependencies_missing', 'give `setup: "npm ci"`'), 'give --setup "npm ci"'],
  [new GoalError('unsuitable', 'leave `check` out'), 'leave --check out'],
  [new StoreError('ERR_AGENT_STORE', 'cannot use /x'), 'cannot use /x (--data)'],
  [
    new StoreError('ERR_AGENT_STORE_LOCKED', 'it is in use'),
    'it is in use; if that is runwright, start the run in its dashboard, or set --data',
  ],
] as readonly (readonly [AgentError, string])[]) {
  test(`${error.name} is said as: ${expected}`, () => {
    assert.equal(inOwnWords(error, 'runwright').message, expected)
  })
}
