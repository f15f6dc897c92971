import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isTerminal, type AgentEvent, type RunDetails } from 'runwright/agent'
import { AsyncClient } from 'runwright/http'
import { modelServer, runwright, start, world, type Turn } from '../helpers/cli.js'

const write = (path: string, content: string): Turn => ({
  calls: [{ tool: 'write_file', args: { path, content } }],
})
const isDone = 'shell: grep -q yes done'

test('an achieved goal ends with 0, after plain lines and the net change', async (t) => {
  const at = world(t, { done: 'no\n' })
  const model = await modelServer(t, [write('done', 'yes\n'), { text: 'It is done.' }])
  const run = start(t, at, ['run', isDone, ...model.args], { env: model.env })
  assert.equal(await run.end(), 0, run.err)
  const plain = run.out.replaceAll(/\d+ ms/g, 'N ms').replaceAll(/run [\da-f-]{36}/g, 'run ID')
  assert.equal(
    plain,
    [
      `${isDone} with openai:stub in ${at.project}`,
      'run ID',
      '  check      not met: exit code 1 (N ms)',
      'iteration 1',
      '  write_file done',
      '  model      It is done.',
      '  check      met: exit code 0 (N ms)',
      'achieved after 1 iteration: exit code 0 (2 model calls, 20 tokens, cost not known)',
      'modified done (+1 -1)',
      '--- a/done',
      '+++ b/done',
      '@@ -1 +1 @@',
      '-no',
      '+yes',
      '',
    ].join('\n'),
  )
  assert.equal(run.err, '')
})

test('a goal that is not achieved ends with 1', async (t) => {
  const model = await modelServer(t, [{ text: 'I cannot.' }])
  const args = ['run', 'shell: false', '--max-iterations', '1', ...model.args]
  const run = start(t, world(t), args, { env: model.env })
  assert.equal(await run.end(), 1, run.err)
  assert.match(run.out, /^failed after 1 iteration: /m)
})

test('a model that cannot be called is a line, which does not have the key', async (t) => {
  const args = ['run', 'shell: false', '--model', 'openai:gpt-5-mini']
  const env = { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_API_KEY: 'sk-0123456789abcdef' }
  const run = start(t, world(t), args, { env })
  await run.until(/^ {2}(error|warn) +.*$/m)
  run.child.kill('SIGINT')
  await run.end()
  assert.ok(!`${run.out}${run.err}`.includes('sk-0123456789abcdef'))
})

test('--json prints a line per event, then the details, and nothing else', async (t) => {
  const at = world(t, { done: 'no\n' })
  const hostile = 'yes \x1b[31m\x9b2J\u202e\u2028'
  const model = await modelServer(t, [write('done', hostile), { text: hostile }])
  const args = ['run', isDone, '--json', ...model.args]
  const run = start(t, at, args, { env: { ...model.env, FORCE_COLOR: '1' } })
  assert.equal(await run.end(), 0, run.err)
  const lines = run.out.split('\n')
  assert.equal(lines.pop(), '')
  const details = JSON.parse(lines.pop()!) as RunDetails
  assert.equal(details.status, 'achieved')
  const events = lines.map((line) => JSON.parse(line) as AgentEvent)
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1))
  assert.equal(events.at(-1)!.kind, 'run_end')
  assert.equal(details.last_seq, events.length)
  const call = events.find((event) => event.kind === 'tool_call')
  assert.deepEqual(call?.payload.args, { path: 'done', content: hostile })
  assert.doesNotMatch(run.out, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]/)
  assert.equal(run.err, '')
})

test('a gate that nobody can answer ends with 3, and a server continues the run', async (t) => {
  const at = world(t, { done: 'no\n' })
  const model = await modelServer(t, [write('done', 'yes\n'), { text: 'It is done.' }])
  const args = ['run', isDone, '--approve', '--json', ...model.args]
  const run = start(t, at, args, { env: model.env })
  assert.equal(await run.end(), 3, run.err)
  const details = JSON.parse(run.out.trimEnd().split('\n').at(-1)!) as RunDetails
  assert.equal(details.status, 'awaiting_human')
  assert.equal(details.gate?.kind, 'tool')
  const [, id, server] = /run (\S+) waits at a gate .* on the page of (npx .*)\n/.exec(run.err)!
  assert.equal(id, details.run_id)
  assert.equal(server, `npx runwright --root '${at.project}'`)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'no\n')

  // Another run would go on with that one, unseen.
  const second = start(t, at, ['run', 'shell: true'])
  assert.equal(await second.end(), 1)
  assert.match(second.err, new RegExp(`^runwright: run ${id} \\(.*\\) has not ended: npx `))

  const words = ['--root', at.project, '--port', '0']
  const serve = start(t, at, words, { cwd: at.home, env: model.env })
  const [, baseUrl] = await serve.until(/^runwright listening on (\S+)\n/)
  await using client = new AsyncClient({ baseUrl: baseUrl!, timeout: { read: 60_000 } })
  const answered = await client.post(`/api/runs/${id}/resume`, { json: { decision: 'approve' } })
  assert.equal(answered.statusCode, 200, answered.text)
  const headers = { accept: 'text/event-stream' }
  const events = await client.get(`/api/runs/${id}/events`, { headers })
  assert.match(events.text, /"status":"achieved"/)
  serve.child.kill('SIGTERM')
  await serve.end()
  assert.equal(await start(t, at, ['run', 'shell: true']).end(), 0)
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test(`${signal} aborts the run, and ends with 130`, async (t) => {
    const at = world(t)
    const model = await modelServer(t, [])
    const run = start(t, at, ['run', 'shell: false', ...model.args], { env: model.env })
    await run.until(/^iteration 1$/m)
    run.child.kill(signal)
    assert.equal(await run.end(), 130, run.err)
    assert.match(run.out, /^ {2}abort .*\naborted after 1 iteration: /m)
    // Nothing is left that another run would continue.
    assert.equal(await start(t, at, ['run', 'shell: true']).end(), 0)
  })
}

test('a signal that npm passes on counts once', async (t) => {
  const model = await modelServer(t, [])
  const run = start(t, world(t), ['run', 'shell: false', ...model.args], { env: model.env })
  await run.until(/^iteration 1$/m)
  run.child.kill('SIGINT')
  run.child.kill('SIGINT')
  assert.equal(await run.end(), 130, run.err)
  assert.match(run.out, /^aborted after 1 iteration: /m)
})

test('a reader that goes away aborts the run, without a word', async (t) => {
  const at = world(t)
  const model = await modelServer(t, [{ text: 'one' }, { text: 'two' }])
  const [node, ...program] = runwright
  const words = [node!, ...program, 'run', 'shell: false', ...model.args]
  const shell = `set -o pipefail; ${words.map((word) => `'${word}'`).join(' ')} | head -n 1`
  const run = start(t, at, [], { env: model.env, command: ['bash', '-c', shell] })
  assert.equal(await run.end(), 130)
  assert.equal(run.err, '')
  assert.match(run.out, /^shell: false with openai:stub in .*\n$/)
  assert.equal(await start(t, at, ['run', 'shell: true']).end(), 0)
})

test('a run that was killed is named by the next one, which begins nothing', async (t) => {
  const at = world(t)
  const model = await modelServer(t, [])
  const run = start(t, at, ['run', 'shell: false', ...model.args], { env: model.env })
  const [, id] = await run.until(/^run (\S+)$/m)
  await run.until(/^iteration 1$/m)
  run.child.kill('SIGKILL')
  await run.end()
  const next = start(t, at, ['run', 'shell: true', '--json'])
  assert.equal(await next.end(), 1)
  assert.equal(next.out, '')
  assert.match(next.err, new RegExp(`^runwright: run ${id} \\(shell: false\\) has not ended: npx`))
})

test('texts of models, commands and files control nothing', async (t) => {
  const attack = '\x1b]0;owned\x07\x1b[2J\x9b31m\rx\b\u202e'
  const at = world(t)
  const command = `printf '%b' '\\033[2J\\0233\\007'; exit 3`
  const model = await modelServer(t, [
    { text: attack, calls: [{ tool: 'bash', args: { command } }] },
    { calls: [{ tool: 'write_file', args: { path: `a${attack}b`, content: `${attack}\n` } }] },
    { calls: [{ tool: attack, args: { [attack]: attack } }] },
    { text: attack },
  ])
  const args = ['run', 'shell: false', '--max-iterations', '1', ...model.args]
  const run = start(t, at, args, { env: model.env })
  assert.equal(await run.end(), 1, run.err)
  assert.doesNotMatch(`${run.out}${run.err}`, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202e]/)
  assert.match(run.out, /\\u001b\[2J/)
})

test('FORCE_COLOR brings colours where there is no terminal, but no progress line', async (t) => {
  const run = start(t, world(t), ['run', 'shell: true'], { env: { FORCE_COLOR: '1' } })
  assert.equal(await run.end(), 0)
  assert.match(run.out, /\x1b\[32mmet\x1b\[39m/)
  assert.doesNotMatch(run.out, /\r|\x1b\[K/)
})

test('--isolated leaves the folder alone when nobody can be asked', async (t) => {
  const at = world(t, { done: 'no\n' })
  const model = await modelServer(t, [write('done', 'yes\n'), { text: 'It is done.' }])
  const args = ['run', isDone, '--isolated', ...model.args]
  const run = start(t, at, args, { env: model.env })
  assert.equal(await run.end(), 0, run.err)
  assert.match(run.out, /^\+yes$/m)
  assert.match(run.err, /^runwright: the changes wait in a private copy: npx runwright .*\n$/)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'no\n')
})

test('--attempts shows every attempt, and applies the changes of the one taken', async (t) => {
  const at = world(t, { done: 'no\n' })
  const turns = [write('done', 'yes\n'), { text: 'It is done.' }]
  const model = await modelServer(t, [...turns, ...turns])
  const args = ['run', isDone, '--attempts', '1', ...model.args]
  const run = start(t, at, args, { env: model.env })
  assert.equal(await run.end(), 0, run.err)
  assert.match(run.out, /^ {2}attempt 1 {2}begins with openai:stub$/m)
  assert.match(run.out, /^#1 {2}write_file done$/m)
  assert.match(run.out, /^ {2}attempt 1 {2}is taken: /m)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'yes\n')
})

test('a goal in free text is checked with --check, in the folder of --cwd', async (t) => {
  const at = world(t, { done: 'no\n' })
  const model = await modelServer(t, [write('done', 'yes\n'), { text: 'It is done.' }])
  const data = join(at.home, 'own')
  const own = ['--cwd', at.project, '--check', 'grep -q yes done', '--data', data]
  const args = ['run', 'Write yes.', ...own, '--json', ...model.args]
  const run = start(t, at, args, { env: model.env, cwd: at.home })
  assert.equal(await run.end(), 0, run.err)
  const details = JSON.parse(run.out.trimEnd().split('\n').at(-1)!) as RunDetails
  assert.ok(isTerminal(details.status))
  assert.equal(details.cwd, at.project)
  assert.equal(details.check, 'grep -q yes done')
})

test('--attempts and --approve together: the gate of an attempt is named', async (t) => {
  const at = world(t, { done: 'no\n' })
  const model = await modelServer(t, [write('done', 'yes\n')])
  const args = ['run', isDone, '--attempts', '1', '--approve', ...model.args]
  const run = start(t, at, args, { env: model.env })
  assert.equal(await run.end(), 3, run.err)
  const [, root] = /^run (\S+)$/m.exec(run.out)!
  const [, waiting] = /run (\S+) waits at a gate/.exec(run.err)!
  assert.notEqual(waiting, root)
})
