import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { helpOf, readArguments, UsageError } from '../../lib/cli/command-line.js'
import { RUN } from '../../lib/cli/run.js'
import { SERVE } from '../../lib/cli/serve.js'
import { start, world } from '../helpers/cli.js'
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

for (const [args, message] of [
  [['rnu'], /^runwright: unknown command rnu; did you mean run\?\n$/],
  [['help', 'constructor'], /^runwright: unknown command constructor; .*\n$/],
  [['npm-test'], /^runwright: unknown command npm-test; for a goal: runwright run npm-test\n$/],
  [['--prot', '1'], /^runwright: unknown option --prot; did you mean --port\?\n$/],
  [['--port', '70000'], /^runwright: --port must be a number from 0 to 65535, got 70000\n$/],
  [['--port', 'http'], /^runwright: --port must be a whole number, got "http"\n$/],
  [['serve', 'there'], /^runwright: serve takes no there; folders: --root there\n$/],
  [['--keys', 'a='], /^runwright: --keys must be name=key pairs, separated by commas\n$/],
  [['--root', '/no/such'], /^runwright: --root: \/no\/such does not exist\n$/],
  [['--root', '/etc/passwd'], /^runwright: --root: \/etc\/passwd is not a folder\n$/],
  [['--model', 'nobody:x', '--port', '0'], /^runwright: .*nobody.*\n$/],
  [['--host', 'no.such.invalid', '--port', '0'], /^runwright: --host \S+ is not an address .*\n$/],
  [['--keys', 'a=short', '--port', '0'], /^runwright: (?!.*=short).*16 characters.*\n$/m],
  [['run'], /^runwright: name a goal, such as npm-test; see run --help\n$/],
  [['run', 'two', 'words'], /^runwright: put a goal of several words in quotes: "two words"\n$/],
  [['run', 'npm-tets'], /^runwright: unknown goal npm-tets; /],
  [['run', 'make it faster'], /^runwright: .*check/],
  [['run', 'auto', '--max-iterations', '0'], /^runwright: --max-iterations must be .*1.*\n$/],
  [['run', 'shell: true', '--attempts', '99'], /^runwright: --attempts must be an integer from 1 to 16, got 99\n$/],
  [['run', 'shell: true', '--model', 'nobody:x'], /^runwright: .*nobody.*\n$/],
  [['run', 'shell: true', '--cwd', 'nowhere'], /^runwright: --cwd: nowhere does not exist\n$/],
  [['\x1b[2Jx'], /^runwright: unknown command \\u001b\[2Jx; .*\n$/],
] as const) {
  test(`${JSON.stringify(args.join(' '))} ends with 2 and one line`, async (t) => {
    const started = start(t, world(t), args)
    assert.equal(await started.end(), 2, started.out)
    assert.match(started.err, message)
    assert.equal(started.out, '')
  })
}

for (const [args, text] of [
  [['--help'], 'Usage: runwright [serve] [options]'],
  [['serve', '-h'], 'Usage: runwright [serve] [options]'],
  [['run', '--help'], 'Usage: runwright run <goal> [options]'],
  [['help', 'run'], 'Usage: runwright run <goal> [options]'],
  [['help'], 'Usage: runwright [serve] [options]'],
  [['--version'], JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version],
] as const) {
  test(`${args.join(' ')} prints to standard output and ends with 0`, async (t) => {
    const started = start(t, world(t), args)
    assert.equal(await started.end(), 0)
    assert.ok(started.out.includes(text), started.out)
    assert.equal(started.err, '')
  })
}
