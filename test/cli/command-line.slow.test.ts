import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
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
