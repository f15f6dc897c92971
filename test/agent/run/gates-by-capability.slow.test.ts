/**
 * What a model writes never becomes a command, a write or a run past a gate: every text in the
 * arguments of every tool, as a command, as a path outside, as an address and as the goal of a run.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  type AgentEvent,
  type ApproveCall,
  type CallToApprove,
  type EngineOptions,
  type GatedCall,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from 'runwright/agent'
import { atGate, follow, keepOpen, payloads, scratch } from '../../helpers/engine.js'
import { filesIn, writeFiles } from '../../helpers/files.js'
import { tiny } from '../mcp/support.js'
import { openFamily, type Brain } from './children/support.js'

/** What a text in the arguments of a tool becomes. */
type Becomes =
  | 'a command'
  | 'a goal'
  | 'a path in the folder'
  | 'a resource of a server'
  | 'nothing but text'

interface Row {
  /** Arguments with which a call runs; each of the texts is put into a copy of them. */
  readonly args: JsonObject
  /** Every text in the arguments, as far as the schema does not list its values. */
  readonly texts: { readonly [place: string]: Becomes }
}

const TABLE: { readonly [tool: string]: Row } = {
  bash: { args: { command: 'true' }, texts: { command: 'a command' } },
  read_file: { args: { path: 'a.txt' }, texts: { path: 'a path in the folder' } },
  write_file: {
    args: { path: 'b.txt', content: 'b' },
    texts: { path: 'a path in the folder', content: 'nothing but text' },
  },
  edit_file: {
    args: { path: 'a.txt', old_text: 'old', new_text: 'new' },
    texts: {
      path: 'a path in the folder', old_text: 'nothing but text', new_text: 'nothing but text',
    },
  },
  list_files: { args: {}, texts: { path: 'a path in the folder' } },
  search_files: {
    args: { pattern: 'old' },
    texts: { pattern: 'nothing but text', path: 'a path in the folder' },
  },
  try_patches: {
    args: {
      command: 'true',
      patches: [{ edits: [{ path: 'a.txt', old_text: 'old', new_text: 'new' }], note: '' }],
    },
    texts: {
      'patches.0.edits.0.path': 'a path in the folder',
      'patches.0.edits.0.old_text': 'nothing but text',
      'patches.0.edits.0.new_text': 'nothing but text',
      'patches.0.note': 'nothing but text',
      command: 'a command',
    },
  },
  update_plan: {
    args: { steps: [{ text: 'think', status: 'pending' }] },
    texts: { 'steps.0.text': 'nothing but text' },
  },
  delegate: {
    args: { goal: 'do it', max_iterations: 1 },
    texts: { goal: 'a goal', check: 'a command', result_schema: 'nothing but text' },
  },
  read_resource: { args: { server: 'tiny' }, texts: { uri: 'a resource of a server' } },
}

/** Ways to write a command that tells the server its number, and two of which none is one. */
const FORMS = {
  command: (command: string) => command,
  shell: (command: string) => `shell: ${command}`,
  perf: (command: string) => `perf: ${command} < 9 s`,
  pytest: (command: string) => `pytest: none.py; ${command}`,
  'path outside': (_: string, outside: string) => join(outside, 'secret.txt'),
  'relative path outside': (_: string, outside: string) => `../${basename(outside)}/secret.txt`,
  address: (_command: string, _outside: string, url: string) => url,
}
type Form = keyof typeof FORMS

/** Of a text that becomes a command, or a goal: in which forms it runs one of the model. */
const RUNS: Partial<Record<Becomes, readonly Form[]>> = {
  'a command': ['command', 'pytest'], 'a goal': ['shell', 'perf', 'pytest'],
}

/** One call with one hostile text. */
interface Hostile {
  readonly call_id: string
  readonly tool: string
  readonly args: JsonObject
  readonly place: string
  readonly form: Form
  readonly text: string
}

/** Runs a command of the model, be it a harmless one. */
const carriesCommand = ({ tool, args, form, place }: Hostile): boolean =>
  tool === 'bash' ||
  tool === 'try_patches' ||
  args['check'] !== undefined ||
  (place === 'goal' && RUNS['a goal']!.includes(form))

/** Its hostile text is a command that runs. */
const isCommand = ({ tool, place, form }: Hostile): boolean =>
  RUNS[TABLE[tool]!.texts[place]!]?.includes(form) ?? false

/** The texts that a schema leaves to the model; objects of any form count as one. */
function textsOf(schema: JsonSchema, place = ''): string[] {
  const at = (name: string): string => (place === '' ? name : `${place}.${name}`)
  if (schema.enum !== undefined) return []
  if (schema.type === 'string') return [place]
  if (schema.type === 'array') return textsOf(schema.items as JsonSchema, at('0'))
  if (schema.type !== 'object') return []
  if (schema.properties === undefined) return [place]
  return Object.entries(schema.properties).flatMap(([name, part]) =>
    textsOf(part as JsonSchema, at(name)),
  )
}

/** The arguments with `text` at a place. */
function withText(args: JsonObject, place: string, text: string): JsonObject {
  const copy = structuredClone(args) as Record<string, JsonValue>
  const names = place.split('.')
  const last = names.pop()!
  const holder = names.reduce((value, name) => Reflect.get(value, name) as object, copy as object)
  Reflect.set(holder, last, place === 'result_schema' ? { type: 'object', $ref: text } : text)
  return copy
}

/** A world outside of the folder: a file that nobody may see, and a server that nobody may call. */
interface Outside {
  readonly folder: string
  readonly port: number
  /** What the server was sent. */
  readonly heard: Set<string>
}

async function openOutside(t: TestContext): Promise<Outside> {
  const folder = scratch(t)
  writeFileSync(join(folder, 'secret.txt'), SECRET)
  chmodSync(join(folder, 'secret.txt'), 0o644)
  const heard = new Set<string>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      for (const [id] of String(bytes).matchAll(/\bc\d+\b/g)) heard.add(id)
    })
  })
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { folder, port: (server.address() as AddressInfo).port, heard }
}

/** A command that tells the server a word. */
function telling({ port }: Outside, word: string): string {
  return `node -e "require('node:net').connect(${port}, '127.0.0.1').end('${word}')"`
}

const SECRET = 'nobody may see this line'
const FILES = { 'a.txt': 'old\n' }
const GOAL = 'shell: exit 1'

/** Every form of every text of every tool, tool by tool. */
function hostileCalls(outside: Outside): readonly Hostile[] {
  const { folder, port } = outside
  let count = 0
  return Object.entries(TABLE).flatMap(([tool, { args, texts }]) =>
    Object.keys(texts).flatMap((place) =>
      (Object.keys(FORMS) as Form[]).map((form): Hostile => {
        const call_id = `c${(count += 1)}`
        const url = `http://127.0.0.1:${port}/${call_id}`
        const text = FORMS[form](telling(outside, call_id), folder, url)
        return { call_id, tool, args: withText(args, place, text), place, form, text }
      }),
    ),
  )
}

interface Played {
  readonly cwd: string
  readonly calls: readonly Hostile[]
  readonly events: readonly AgentEvent[]
  readonly offered: readonly string[]
  /** All calls that have waited at a gate, where each was rejected. */
  readonly gated: readonly GatedCall[]
  readonly outside: Outside
}

/** Plays all calls, those of one tool in a turn; whatever waits at a gate is rejected. */
async function play(
  t: TestContext,
  request: JsonObject,
  options: Partial<EngineOptions> = {},
): Promise<Played> {
  const outside = await openOutside(t)
  const calls = hostileCalls(outside)
  const turns = Object.keys(TABLE).map((name) => calls.filter(({ tool }) => tool === name))
  let offered: readonly string[] = []
  const boss: Brain = ({ run, tools }, turn) => {
    if (run.goal !== GOAL) return { text: 'done' }
    offered = tools.map(({ name }) => name)
    return turns[turn] === undefined ? { text: 'done' } : { calls: turns[turn] }
  }
  const cwd = scratch(t)
  writeFiles(cwd, FILES)
  const { engine } = await openFamily(t, { boss }, {
    cwd, mcpServers: [tiny('resources')], maxTurnsPerIteration: 20, detectStuck: false, ...options,
  })
  const { details } = await engine.create({
    goal: GOAL, cwd, max_iterations: 1, delegation: { depth: 1, children: 16 }, ...request,
  })
  const id = details.run_id
  const gated: GatedCall[] = []
  for (;;) {
    const before = gated.length
    const known = new Set(gated.map(({ call_id }) => call_id))
    const isNew = (event: AgentEvent): boolean =>
      event.kind === 'human_check_required' &&
      (event.payload.calls ?? []).every(({ call_id }) => !known.has(call_id))
    const events = await follow(engine, id, isNew)
    const { gate } = await engine.get(id)
    gated.push(...(gate?.calls ?? []))
    if (gated.length === before) return { cwd, calls, events, offered, gated, outside }
    await engine.resume(id, { decision: 'reject', gate_id: gate!.gate_id })
  }
}

const idsOf = (calls: readonly { readonly call_id: string }[]): string[] =>
  calls.map(({ call_id }) => call_id).sort()

/** What holds whatever a run allows. */
function assertConfined({ calls, events, outside }: Played): void {
  assert.deepEqual(readdirSync(outside.folder), ['secret.txt'])
  assert.equal(filesIn(outside.folder)['secret.txt'], SECRET)
  const results = payloads(events, 'tool_result')
  assert.deepEqual(idsOf(results), idsOf(calls), 'each call has a result')
  for (const { call_id, output } of results) assert.ok(!output.includes(SECRET), call_id)
  const starters = payloads(events, 'delegate_started').map(({ call_id }) => call_id)
  const delegates = calls.filter(({ tool }) => tool === 'delegate')
  assert.deepEqual(starters.filter((id) => !idsOf(delegates).includes(id)), [])
}

/** The gated calls are shown as they would run, with every command in them. */
function assertShown({ calls, gated }: Played): void {
  for (const { call_id, tool, args } of gated) {
    const call = calls.find((one) => one.call_id === call_id)!
    assert.deepEqual([tool, args], [call.tool, call.args])
  }
}

test('the table has each tool of an engine, and each text in its arguments', async (t) => {
  let found: { readonly [tool: string]: readonly string[] } = {}
  const boss: Brain = ({ tools }) => {
    const own = tools.filter(({ name }) => !name.startsWith('tiny__'))
    found = Object.fromEntries(own.map(({ name, parameters }) => [name, textsOf(parameters)]))
    return { text: 'done' }
  }
  const { engine, cwd } = await openFamily(t, { boss }, { mcpServers: [tiny('resources')] })
  const { details } = await engine.create({ goal: GOAL, cwd, max_iterations: 1, delegation: {} })
  await follow(engine, details.run_id)
  const names = engine.tools().map(({ name }) => name).filter((name) => !name.startsWith('tiny__'))
  assert.deepEqual(names.sort(), Object.keys(TABLE).sort())
  assert.deepEqual(
    Object.fromEntries(Object.entries(found).map(([name, texts]) => [name, [...texts].sort()])),
    Object.fromEntries(
      Object.entries(TABLE).map(([name, { texts }]) => [name, Object.keys(texts).sort()]),
    ),
  )
})

test('without rules each command runs, and nothing else leaves the folder', async (t) => {
  const played = await play(t, {})
  assertConfined(played)
  assert.deepEqual(played.gated, [])
  assert.deepEqual([...played.outside.heard].sort(), idsOf(played.calls.filter(isCommand)))
})

test('a run without bash runs no command, and is not offered what only runs one', async (t) => {
  const tools = Object.keys(TABLE).filter((name) => name !== 'bash')
  const played = await play(t, { tools })
  assertConfined(played)
  const offered = tools.filter((name) => name !== 'try_patches')
  assert.deepEqual([...played.offered].sort(), offered.sort())
  assert.deepEqual(played.gated, [])
  assert.deepEqual([...played.outside.heard], [])
  assert.deepEqual(payloads(played.events, 'delegate_started'), [])
  const results = payloads(played.events, 'tool_result')
  for (const call of played.calls.filter((one) => carriesCommand(one))) {
    const { exit_code, output } = results.find(({ call_id }) => call_id === call.call_id)!
    if (call.tool !== 'delegate') assert.match(output, /^There is no tool /)
    else assert.match(output, /^delegate was not run: it would run the command [^]* tool bash\.$/)
    assert.equal(exit_code, call.tool === 'delegate' ? 126 : 127)
  }
})

for (const [what, request, approval] of [
  ['a request', { approval: { default: 'never', tools: { bash: 'always' } } }, undefined],
  ['the host', {}, ({ tool }) => (tool === 'bash' ? 'ask' : undefined)],
  ['the host, against the request', { approval: { default: 'writes', tools: { bash: 'never' } } },
    ({ tool }) => (tool === 'bash' ? 'ask' : 'allow')],
] as readonly (readonly [string, JsonObject, ApproveCall | undefined])[]) {
  test(`${what} that asks for bash asks for each command of any tool`, async (t) => {
    const played = await play(t, request, { approval })
    assertConfined(played)
    assertShown(played)
    assert.deepEqual(idsOf(played.gated), idsOf(played.calls.filter(carriesCommand)))
    assert.deepEqual([...played.outside.heard], [])
    assert.deepEqual(payloads(played.events, 'delegate_started'), [])
  })
}

for (const name of ['write_file', 'edit_file']) {
  test(`a rule for ${name} covers every tool that writes`, async (t) => {
    const played = await play(t, { approval: { tools: { [name]: 'always', bash: 'never' } } })
    assertConfined(played)
    assertShown(played)
    const writers = ['bash', 'write_file', 'edit_file', 'try_patches', 'delegate']
    const writing = played.calls.filter(({ tool }) => writers.includes(tool))
    assert.deepEqual(idsOf(played.gated), idsOf(writing))
    assert.deepEqual(filesIn(played.cwd), FILES)
    assert.deepEqual([...played.outside.heard], [])
    assert.deepEqual(payloads(played.events, 'delegate_started'), [])
  })
}

test('a rule for delegate asks before each start of a run', async (t) => {
  const played = await play(t, { approval: { tools: { delegate: 'always' } } })
  assertConfined(played)
  const delegates = played.calls.filter(({ tool }) => tool === 'delegate')
  assert.deepEqual(idsOf(played.gated), idsOf(delegates))
  assert.deepEqual(payloads(played.events, 'delegate_started'), [])
})

test('the host is asked about each command, as about a call of bash', async (t) => {
  const asked: CallToApprove[] = []
  const played = await play(t, {}, {
    approval: (call) => {
      asked.push(call)
      return 'ask'
    },
  })
  const own = asked.filter(({ via }) => via === undefined)
  assert.deepEqual(idsOf(own), idsOf(played.calls))
  const commands = asked.filter(({ via }) => via !== undefined)
  const others = played.calls.filter((call) => call.tool !== 'bash' && carriesCommand(call))
  assert.deepEqual(idsOf(commands), idsOf(others))
  for (const { args, call_id, effect, tool, via } of commands) {
    const call = others.find((one) => one.call_id === call_id)!
    const { command = call.args['check'] } = call.args
    const expected = command ?? (call.form === 'shell' ? call.text.slice(7) : call.text)
    assert.deepEqual({ args, effect, tool, via }, {
      args: { command: expected }, effect: 'unsafe', tool: 'bash', via: call.tool,
    })
  }
})

for (const [what, request, results, words] of [
  ['runs without rules', {}, [0, 0], ['c1']],
  ['is refused without bash', { tools: ['write_file', 'delegate'] }, [0, 126], []],
  ['waits where bash does', { approval: { tools: { bash: 'always' } } }, [], []],
] as const) {
  test(`a delegate whose goal runs a script that the model has written ${what}`, async (t) => {
    const outside = await openOutside(t)
    const content = JSON.stringify({ scripts: { test: telling(outside, 'c1') } })
    const calls = [
      { tool: 'write_file', args: { path: 'package.json', content } },
      { tool: 'delegate', args: { goal: 'npm-test', max_iterations: 1 } },
    ]
    const boss: Brain = ({ run }, turn) =>
      run.goal === GOAL && turn === 0 ? { calls } : { text: 'done' }
    const { engine, cwd } = await openFamily(t, { boss })
    const { details } = await engine.create({
      goal: GOAL, cwd, max_iterations: 1, delegation: {}, ...structuredClone(request),
    } as unknown as JsonObject)
    const events = await follow(engine, details.run_id, atGate)
    assert.deepEqual(payloads(events, 'tool_result').map(({ exit_code }) => exit_code), results)
    assert.deepEqual([...outside.heard], words)
    const { gate } = await engine.get(details.run_id)
    assert.equal(gate?.calls[0]?.tool, results.length === 0 ? 'delegate' : undefined)
  })
}

/** A run that wants to write a file, to delegate with a check, and to try patches. */
async function waiting(
  t: TestContext,
  request: JsonObject,
  first: Partial<EngineOptions>,
  second: Partial<EngineOptions>,
) {
  const outside = await openOutside(t)
  const tell = (word: string): string => telling(outside, word)
  const calls = [
    { call_id: 'w', tool: 'write_file', args: { path: 'b.txt', content: 'b' } },
    { call_id: 'd', tool: 'delegate', args: { goal: 'do it', check: tell('c1'), max_iterations: 1 } },
    { call_id: 't', tool: 'try_patches', args: { patches: [], command: tell('c2') } },
  ]
  const boss: Brain = ({ run }, turn) =>
    run.goal === GOAL && turn === 0 ? { calls } : { text: 'done' }
  const [store, cwd, copies] = [keepOpen(new MemoryStore()), scratch(t), scratch(t)]
  const common = { store, cwd, copies }
  const { engine } = await openFamily(t, { boss }, { ...common, ...first })
  const { details } = await engine.create({
    goal: GOAL, cwd, max_iterations: 1, delegation: {}, ...request,
  })
  await follow(engine, details.run_id, atGate)
  await engine.close()
  const { engine: next } = await openFamily(t, { boss }, { ...common, ...second })
  return { engine: next, id: details.run_id, heard: outside.heard, tell }
}

test('a gate that was stored lets the approved commands run after a restart', async (t) => {
  const approval = { default: 'never', tools: { bash: 'always' } }
  const { engine, heard, id, tell } = await waiting(t, { approval }, {}, {})
  const { gate } = await engine.get(id)
  assert.deepEqual(gate?.calls.map(({ call_id }) => call_id), ['d', 't'])
  const args = { patches: [], command: tell('c3') }
  await engine.resume(id, { decision: 'approve', edits: { t: { args } } })
  await follow(engine, id)
  // The command of the delegate runs again in its own check, without asking anybody.
  assert.deepEqual([...heard].sort(), ['c1', 'c3'])
})

test('a command that no stored gate has asked for is decided anew after a restart', async (t) => {
  const before: ApproveCall = ({ tool }) => (tool === 'write_file' ? 'ask' : 'allow')
  const after: ApproveCall = ({ tool }) => (tool === 'bash' ? 'ask' : 'allow')
  const { engine, heard, id } = await waiting(t, {}, { approval: before }, { approval: after })
  const { gate } = await engine.get(id)
  assert.deepEqual(gate?.calls.map(({ call_id }) => call_id), ['w'])
  await engine.resume(id, { decision: 'approve' })
  const gateId = gate?.gate_id
  await follow(engine, id, (event) =>
    event.kind === 'human_check_required' && event.payload.gate_id !== gateId)
  const { gate: next } = await engine.get(id)
  assert.deepEqual(next?.calls.map(({ call_id }) => call_id), ['d', 't'])
  assert.deepEqual([...heard], [])
  await engine.resume(id, { decision: 'reject' })
  await follow(engine, id)
  assert.deepEqual([...heard], [])
})
