import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import {
  bubblewrapExecutor,
  bubblewrapProblem,
  defineTool,
  processExecutor,
  type Executor,
  type ExecutorName,
  type ToolCommandOptions,
} from 'runwright/agent'
import { openEngine, runToEnd, scratch, testProvider } from '../../helpers/engine.js'

const noSandbox = (await bubblewrapProblem()) ?? false
const noBash = existsSync('/bin/bash') ? false : 'there is no bash'

/** Calls a tool that runs this command in a run of its own; its output and exit code. */
async function runInTool(
  t: TestContext,
  command: string,
  options: ToolCommandOptions,
  engineOptions: { readonly executor?: ExecutorName | Executor; readonly isolated?: boolean } = {},
): Promise<{ readonly output: string; readonly exit_code: number }> {
  const tool = defineTool({
    name: 'own',
    description: 'runs a command',
    parameters: { type: 'object' },
    startsProcess: true,
    execute: (_, context) => context.run(command, options),
  })
  const { executor, isolated = false } = engineOptions
  const provider = testProvider((_, n) => (n === 0 ? { calls: [{ tool: 'own', args: {} }] } : {}))
  const { engine } = await openEngine(t, {
    tools: [tool],
    providers: [provider],
    executor,
    checkpoints: 'auto',
    workspaceFolder: scratch(t),
  })
  const { events } = await runToEnd(engine, {
    goal: 'shell: false',
    max_iterations: 1,
    workspace: isolated ? 'isolated' : 'in_place',
  })
  const result = events.find((event) => event.kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  return result.payload
}

/** One of a host's, which knows of nothing but command lines. */
const hostExecutor: Executor = {
  name: 'host',
  killMarked: () => Promise.resolve(0),
  run: (command, { cwd, env }) =>
    new Promise((resolve) => {
      const options = { cwd, env: { PATH: process.env['PATH'], ...env } }
      execFile('/bin/sh', ['-c', command], options, (error, stdout, stderr) => {
        const exitCode = typeof error?.code === 'number' ? error.code : 0
        const output = stdout + stderr
        resolve({ exitCode, output, truncated: false, timedOut: false, durationMs: 0 })
      })
    }),
}

const executors = [
  { name: 'processes', executor: processExecutor(), isolated: false, skip: false },
  {
    name: 'processes of bash',
    executor: processExecutor({ shell: '/bin/bash' }),
    isolated: false,
    skip: noBash,
  },
  { name: 'sandboxes', executor: bubblewrapExecutor(), isolated: false, skip: noSandbox },
  { name: 'copies', executor: processExecutor(), isolated: true, skip: false },
  { name: 'an executor of the host', executor: hostExecutor, isolated: false, skip: false },
] as const

const HOSTILE: readonly string[] = [
  '$(touch planted)', '`touch planted`', '; touch planted', '| touch planted', '&& touch planted',
  "'; touch planted; '", "''", "'", "\\'", '"', '"$(touch planted)"', '\\', 'a\nb\r\n', '\n', '\t',
  '', ' ', '-rf', '--', '--help', '-', '*', '~', '!!', '$HOME', '${IFS}', '#', '%s', 'A=b', '{a,b}',
  '\u00e9\u4e2d\u{1f600}', '\u0081\u0001\u001b', '\u2028', 'x'.repeat(60_000),
]

const PRINT = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))'

for (const { name, skip, ...options } of executors) {
  test(`args reach a program as they are: ${name}`, { skip }, async (t) => {
    const short = HOSTILE.filter((arg) => arg.length < 60_000)
    const args = ['-e', PRINT, '--', ...short]
    const { output, exit_code } = await runInTool(t, process.execPath, { args }, options)
    assert.equal(exit_code, 0, output)
    assert.deepEqual(JSON.parse(output), short)
    const long = ['-e', 'console.log(process.argv[1].length)', '--', 'x'.repeat(100_000)]
    assert.equal((await runInTool(t, process.execPath, { args: long }, options)).output, '100000\n')
  })

  test(`variables reach a command as they are: ${name}`, { skip }, async (t) => {
    const env = Object.fromEntries(HOSTILE.map((value, i) => [`V${i}`, value]))
    const print = `console.log(JSON.stringify(process.env, (name, value) =>
      name === "" || (/^V\\d+$/.test(name) && value.length < 1000) ? value : undefined))`
    const short = Object.entries(env).filter(([, value]) => value.length < 1_000)
    const args = ['-e', print]
    const seen = await runInTool(t, process.execPath, { args, env }, options)
    assert.deepEqual(JSON.parse(seen.output), Object.fromEntries(short), seen.output)
    const line = await runInTool(t, 'printf %s "$V0$V5"; ls', { env }, options)
    assert.equal(line.output, `${HOSTILE[0]}${HOSTILE[5]}`)
  })
}

const SECRET = 'sk-never-shown'

for (const [what, command, options, problem] of [
  ['NUL in an argument', 'echo', { args: ['a', `${SECRET}\0`] }, 'args[1] must not contain NUL'],
  ['NUL in the program', 'ec\0ho', { args: [] }, 'the program must not contain NUL'],
  ['NUL in a variable', 'true', { env: { A: `${SECRET}\0` } }, 'env.A must not contain NUL'],
  ['an argument that is no string', 'echo', { args: [7] }, 'args[0] must be a string, got 7'],
  ['a variable that is no string', 'true', { env: { A: null } }, 'env.A must be a string, got null'],
  ['a program without a name', '', { args: [] }, 'the program must not be empty'],
  ['a program like an option', '-a', { args: ['x'] }, 'the program must not begin with -'],
  ['a variable named like two', 'true', { env: { 'A=B': 'x' } }, 'variables in env must be named'],
  ['a variable without a name', 'true', { env: { '': 'x' } }, 'variables in env must be named'],
  ['too many bytes', 'echo', { args: [`${SECRET}${"'".repeat(40_000)}`] }, 'of at most 131071'],
  ['a long variable', 'true', { env: { A: 'x'.repeat(131_070) } }, 'at most 131071 bytes'],
  ['args that are no array', 'echo', { args: 'x' }, 'args must be an array'],
  ['a misspelt option', 'echo', { arg: ['x'] }, 'use args'],
] as const) {
  test(`nothing runs with ${what}; the model is told`, async (t) => {
    let ran = 0
    const executor: Executor = {
      ...hostExecutor,
      run: async (line, given) => {
        if (given.mark !== '' && line !== 'false') ran++
        return await hostExecutor.run(line, given)
      },
    }
    const invalid = options as unknown as ToolCommandOptions
    const { output, exit_code } = await runInTool(t, command, invalid, { executor })
    assert.equal(exit_code, 1)
    assert.ok(output.includes(problem) && !output.includes(SECRET), output)
    assert.equal(ran, 0)
  })
}

test('args may be as long as the limit says, and so may a variable', async (t) => {
  const most = 'x'.repeat(131_071 - "exec 'printf' '%.3s' ''".length)
  const args = ['%.3s', most]
  assert.equal((await runInTool(t, 'printf', { args })).output, 'xxx')
  const beyond = await runInTool(t, 'printf', { args: ['%.3s', `${most}x`] })
  assert.match(beyond.output, /131072 bytes/)
  const env = { A: 'x'.repeat(131_069) }
  assert.equal((await runInTool(t, 'printf %s "${#A}"', { env })).output, '131069')
})

test('a relative cwd is a folder of the workspace', async (t) => {
  const told: string[] = []
  const tool = defineTool({
    name: 'own', description: 'runs', parameters: { type: 'object' }, startsProcess: true,
    async execute(_, context) {
      await context.run('mkdir -p sub/deep; echo > file')
      for (const cwd of ['sub/deep', './sub', '.', 'file'])
        told.push((await context.run('pwd', { cwd })).output.trim().replace(context.workspace.root, 'W'))
      return 'done'
    },
  })
  const provider = testProvider((_, n) => (n === 0 ? { calls: [{ tool: 'own', args: {} }] } : {}))
  const { engine } = await openEngine(t, { tools: [tool], providers: [provider] })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assert.deepEqual(told, ['W/sub/deep', 'W/sub', 'W'])
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  assert.match(result.payload.output, /^own failed: .*file leads through a file, not a folder/)
})

test('a tool stops a command by a signal of its own, once the command has started', async (t) => {
  let exitCode = 0
  const tool = defineTool({
    name: 'own', description: 'runs', parameters: { type: 'object' }, startsProcess: true,
    async execute(_, context) {
      const stop = new AbortController()
      const onStart = (): Promise<void> => Promise.resolve(stop.abort())
      exitCode = (await context.run('sleep 60', { signal: stop.signal, onStart })).exitCode
      return 'done'
    },
  })
  const provider = testProvider((_, n) => (n === 0 ? { calls: [{ tool: 'own', args: {} }] } : {}))
  const { engine } = await openEngine(t, { tools: [tool], providers: [provider] })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  assert.equal(exitCode, 130)
  assert.ok(events.some(({ kind }) => kind === 'tool_started'), 'the start is in the log')
})

test('a tool may run many commands at once, without a warning', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  const tool = defineTool({
    name: 'own', description: 'runs', parameters: { type: 'object' }, startsProcess: true,
    async execute(_, context) {
      const all = Array.from({ length: 16 }, (_, i) => context.run(`echo ${i}`))
      return (await Promise.all(all)).map(({ output }) => output.trim()).join(' ')
    },
  })
  const provider = testProvider((_, n) => (n === 0 ? { calls: [{ tool: 'own', args: {} }] } : {}))
  const { engine } = await openEngine(t, { tools: [tool], providers: [provider] })
  const { events } = await runToEnd(engine, { goal: 'shell: false', max_iterations: 1 })
  const result = events.find(({ kind }) => kind === 'tool_result')
  assert.ok(result?.kind === 'tool_result')
  assert.equal(result.payload.output, Array.from({ length: 16 }, (_, i) => i).join(' '))
  assert.deepEqual(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning'), [])
})
