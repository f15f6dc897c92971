import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { start, world } from '../helpers/cli.js'
import { root } from '../helpers/markdown.js'

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
  [['--model', 'builtn:repair', '--port', '0'], /; did you mean "builtin:repair"\?\n$/],
  [['--host', 'no.such.invalid', '--port', '0'], /^runwright: --host \S+ is not an address .*\n$/],
  [['--keys', 'a=short', '--port', '0'], /^runwright: (?!.*=short).*16 characters.*\n$/m],
  [['run'], /^runwright: name a goal, such as npm-test; see run --help\n$/],
  [['run', 'two', 'words'], /^runwright: put a goal of several words in quotes: "two words"\n$/],
  [['run', 'npm-tets'], /^runwright: unknown goal npm-tets; /],
  [
    ['run', 'make it faster'],
    /^runwright: .* give --check, .*; with --check, --model must be a language model [^`]*\n$/,
  ],
  [
    ['run', 'make it faster', '--check', 'true'],
    /^runwright: --model must be a language model for a goal in free text: [^`]*\n$/,
  ],
  [['run', 'node-test', '--check', 'a'], /^runwright: the goal node-test .*; leave --check out\n$/],
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

const CANNOT = String.raw`^cannot write to --data \(.*`
const NO_HOME = 'there is no home folder to keep the data in; name a folder with --data'

for (const command of [['run', 'shell: true'], ['--port', '0']]) {
  for (const [what, args, env, code, message] of [
    ['a folder below a file', ['--data', 'file/data'], {}, 1, new RegExp(`${CANNOT}ENOTDIR`)],
    ['a file', ['--data', 'file'], {}, 1, new RegExp(`${CANNOT}(ENOTDIR|EEXIST)`)],
    ['a folder whose runs are a file', ['--data', 'taken'], {}, 1, new RegExp(`${CANNOT}EEXIST`)],
    ['the folder of another program', ['--data', 'other'], {}, 1, /\/other\/runs.* \(--data\)$/],
    ['a home that is no folder', [], { HOME: '/etc/passwd' }, 1, new RegExp(`${CANNOT}/etc`)],
    ['no home', [], { HOME: '' }, 2, new RegExp(`^${NO_HOME}$`)],
    ['a relative home', [], { HOME: 'home', XDG_STATE_HOME: 'state' }, 2, new RegExp(NO_HOME)],
  ] as readonly (readonly [string, string[], Record<string, string>, number, RegExp])[]) {
    test(`${command.join(' ')} with data in ${what} names --data`, async (t) => {
      const at = world(t, { file: '' })
      mkdirSync(join(at.project, 'taken'))
      writeFileSync(join(at.project, 'taken/runs'), '')
      mkdirSync(join(at.project, 'other/runs/tail'), { recursive: true })
      const home = Object.keys(env).length === 0 ? {} : { XDG_STATE_HOME: '', ...env }
      const started = start(t, at, [...command, ...args], { env: home })
      assert.equal(await started.end(), code, started.err + started.out)
      const [, said = ''] = /^runwright: (.*)\n$/.exec(started.err) ?? []
      assert.match(said, message)
      assert.deepEqual(readdirSync(at.project).sort(), ['file', 'other', 'taken'])
    })
  }
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
