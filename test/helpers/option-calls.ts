/**
 * How a test reaches the options at each place of the public API: a call with options of its own.
 */
import { Duplex } from 'node:stream'
import { tmpdir } from 'node:os'
import * as agent from 'runwright/agent'
import * as testing from 'runwright/agent/testing'
import * as http from 'runwright/http'
import * as server from 'runwright/server'
import * as ws from 'runwright/ws'
import { FakeEngine } from '../server/fake-engine.js'

/** Calls the API with `options`, whatever they are; what it returns may be a promise. */
type Call = (options: any) => unknown

export interface OptionCall {
  readonly call: Call
  /** Valid options around the place, given the names of the place. */
  readonly base?: (names: readonly string[]) => object
}

const URL = 'http://a.test/'
const RUN = '01930000-0000-7000-8000-000000000001'
const VERBS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const

const transport = new http.MockTransport(() => new http.Response(200))
const asyncClient = new http.AsyncClient({ transport, trustEnv: false })
const client = new http.Client({ transport, trustEnv: false })
const blank = new http.Request('GET', URL)
const jar = new http.Cookies()
const asyncBody = (): http.AsyncResponse => new http.AsyncResponse(200, { text: 'x' })
const body = (): http.Response => new http.Response(200, { text: 'x' })
const first = (steps: Iterator<unknown> | AsyncIterator<unknown>): unknown => steps.next()

function httpCalls(): Record<string, Call> {
  const calls: Record<string, Call> = {
    'AsyncClient#options': (o) => new http.AsyncClient(o),
    'Client#options': (o) => new http.Client(o),
    'AsyncClient.extend#options': (o) => new http.AsyncClient({ trustEnv: false }).extend(o),
    'Client.extend#options': (o) => new http.Client({ trustEnv: false }).extend(o),
    'AsyncClient.request#options': (o) => asyncClient.request('GET', URL, o),
    'AsyncClient.stream#options': (o) => asyncClient.stream('GET', URL, o),
    'AsyncClient.buildRequest#options': (o) => asyncClient.buildRequest('GET', URL, o),
    'AsyncClient.send#options': (o) => asyncClient.send(blank, o),
    'AsyncClient.sse#options': (o) => first(asyncClient.sse(URL, o)),
    'AsyncClient.paginate#options': (o) => first(asyncClient.paginate(URL, o)),
    'Client.request#options': (o) => client.request('GET', URL, o),
    'Client.stream#options': (o) => client.stream('GET', URL, o),
    'Client.buildRequest#options': (o) => client.buildRequest('GET', URL, o),
    'Client.send#options': (o) => client.send(blank, o),
    'Client.sse#options': (o) => first(client.sse(URL, o)),
    'Client.paginate#options': (o) => first(client.paginate(URL, o)),
    'request#options': (o) => http.request('GET', URL, o),
    'requestSync#options': (o) => http.requestSync('GET', URL, o),
    'stream#options': (o) => http.stream('GET', URL, o),
    'streamSync#options': (o) => http.streamSync('GET', URL, o),
    'del#options': (o) => http.del(URL, o),
    'Cookies#options': (o) => new http.Cookies(null, o),
    'Cookies.fromJSON#options': (o) => http.Cookies.fromJSON([], o),
    'Cookies.get#scope': (o) => jar.get('a', o),
    'Cookies.set#scope': (o) => jar.set('a', 'b', o),
    'Cookies.delete#scope': (o) => jar.delete('a', o),
    'Cookies.clear#scope': (o) => jar.clear(o),
    'DigestAuth#options': (o) => new http.DigestAuth('a', 'b', o),
    'Headers.getList#options': (o) => new http.Headers().getList('a', o),
    'Request#init': (o) => new http.Request('GET', URL, o),
    'AsyncResponse#init': (o) => new http.AsyncResponse(200, o),
    'BaseResponse#init': (o) => new http.Response(200, o),
    'Response#init': (o) => new http.Response(200, o),
    'AsyncResponse.iterRaw#options': (o) => first(asyncBody().iterRaw(o)),
    'AsyncResponse.iterBytes#options': (o) => first(asyncBody().iterBytes(o)),
    'AsyncResponse.iterText#options': (o) => first(asyncBody().iterText(o)),
    'Response.iterRaw#options': (o) => first(body().iterRaw(o)),
    'Response.iterBytes#options': (o) => first(body().iterBytes(o)),
    'Response.iterText#options': (o) => first(body().iterText(o)),
    'SseParser#options': (o) => new http.SseParser(o),
    'BlockingTransport#options': (o) => new http.BlockingTransport(o),
    'HttpTransport#options': (o) => new http.HttpTransport(o),
    'HandlerTransport#options': (o) => new http.HandlerTransport(() => {}, o),
    'RecordingTransport#options': (o) => new http.RecordingTransport(o),
    'CacheTransport#options': (o) => new http.CacheTransport(transport, o),
    'MemoryCacheStore#options': (o) => new http.MemoryCacheStore(o),
    'RetryTransport#options': (o) => new http.RetryTransport(transport, o),
    'Proxy#init': (o) => new http.Proxy(o),
    'proxyConnect#proxy': (o) => http.proxyConnect(o),
    'proxyConnect#options': (o) => http.proxyConnect('http://a.test', o),
    'tlsConnectOptions#options': (o) => http.tlsConnectOptions(o),
  }
  for (const verb of VERBS) {
    calls[`AsyncClient.${verb}#options`] = (o) => asyncClient[verb](URL, o)
    calls[`Client.${verb}#options`] = (o) => client[verb](URL, o)
    // http.delete is http.del.
    if (verb !== 'delete') calls[`${verb}#options`] = (o) => http[verb](URL, o)
    calls[`${verb}Sync#options`] = (o) => http[`${verb}Sync`](URL, o)
  }
  return calls
}

/** A connection whose peer says nothing. */
async function connect(): Promise<ws.WebSocketConnection> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const fields = {
    host: 'a.test',
    upgrade: 'websocket',
    connection: 'Upgrade',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const request = { method: 'GET', url: '/', httpVersion: '1.1', headers: fields }
  const rawHeaders = Object.entries(fields).flat()
  const upgraded = await new ws.WebSocketServer({ keepAlive: null }).upgrade(
    { ...request, rawHeaders, socket: {} },
    socket,
  )
  return upgraded!
}

const wsCalls: Record<string, Call> = {
  'WebSocketClient#options': (o) => new ws.WebSocketClient(o),
  'WebSocketClient.connect#options': (o) => new ws.WebSocketClient().connect('ws://a.test', o),
  'WebSocketServer#options': (o) => new ws.WebSocketServer(o),
  'WebSocketServer.attach#options': (o) => new ws.WebSocketServer().attach({} as never, o),
  'WebSocketServer.close#options': (o) => new ws.WebSocketServer().close(o),
  'WebSocketConnection.send#options': async (o) => (await connect()).send('x', o),
  'WebSocketConnection.sendStream#options': async (o) => (await connect()).sendStream([], o),
  'WebSocketConnection.drained#options': async (o) => (await connect()).drained(o),
  'WebSocketConnection.messages#options': async (o) => (await connect()).messages(o),
}

const store = new agent.MemoryStore()
const roots = [tmpdir()]
const pool = { connect: () => Promise.reject(new Error('no database')) }
const adapter = agent.openAiChatAdapter()
const openEngine = (): Promise<agent.RunEngine> => agent.RunEngine.open({ store, roots })
const workspace = (): Promise<agent.Workspace> => agent.openWorkspace(tmpdir())
const prices = { input: 1, output: 1, as_of: '2026-01-01' }
const mcpServer = (names: readonly string[]): object =>
  names.includes('url') || names.includes('redirectUrl')
    ? { name: 'a', url: 'http://127.0.0.1:9' }
    : { name: 'a', command: 'x' }

/** Methods of an engine that take a caller. */
function byCaller(
  methods: Readonly<Record<string, (engine: agent.RunEngine, caller: agent.Caller) => unknown>>,
): Record<string, OptionCall> {
  const calls = Object.entries(methods).map(([name, method]): [string, OptionCall] => [
    `RunEngine.${name}#caller`,
    {
      call: async (c) => method(await openEngine(), c),
      base: () => ({ owner: { id: null, tenant: null } }),
    },
  ])
  return Object.fromEntries(calls)
}

const agentCalls: Record<string, Call | OptionCall> = {
  'RunEngine.open#options': {
    call: (o: any) => agent.RunEngine.open(o),
    base: (names) => ({ store, roots, mcpServers: [mcpServer(names)] }),
  },
  'RunEngine.create#options': async (o) => (await openEngine()).create({ goal: 'x' }, o),
  'RunEngine.fork#options': async (o) => (await openEngine()).fork(RUN, {}, o),
  'RunEngine.message#options': async (o) => (await openEngine()).message(RUN, { text: 'x' }, o),
  'RunEngine.update#options': async (o) => (await openEngine()).update(RUN, { may_change: [] }, o),
  'RunEngine.list#query': async (o) => (await openEngine()).list(o),
  'RunEngine.subscribe#options': async (o) => (await openEngine()).subscribe(RUN, o),
  'RunEngine.usage#options': async (o) => (await openEngine()).usage(null, o),
  'RunEngine.close#options': async (o) => (await openEngine()).close(o),
  ...byCaller({
    get: (engine, c) => engine.get(RUN, c),
    resume: (engine, c) => engine.resume(RUN, { decision: 'approve' }, c),
    abort: (engine, c) => engine.abort(RUN, c),
    retry: (engine, c) => engine.retry(RUN, c),
    delete: (engine, c) => engine.delete(RUN, c),
    checkFiles: (engine, c) => engine.checkFiles(RUN, c),
    events: (engine, c) => engine.events(RUN, { after: 0, limit: 1 }, c),
    images: (engine, c) => engine.images(RUN, 1, c),
    subscribe: (engine, c) => engine.subscribe(RUN, {}, c),
  }),
  'ModelError#options': (o) => new agent.ModelError('ERR_AGENT_MODEL', 'x', o),
  'FileStore#options': {
    call: (o: any) => new agent.FileStore(o),
    base: () => ({ directory: tmpdir() }),
  },
  'MemoryStore#options': (o) => new agent.MemoryStore(o),
  'PostgresStore#options': { call: (o: any) => new agent.PostgresStore(o), base: () => ({ pool }) },
  'PostgresStore.sweep#retain': (o) => new agent.PostgresStore({ pool } as never).sweep(o),
  'providersFromEnvironment#network': {
    call: (o: any) => agent.providersFromEnvironment({}, o),
    base: () => ({ prices }),
  },
  'createHttpProvider#options': {
    call: (o: any) => agent.createHttpProvider(adapter, o).create('m'),
    base: () => ({ id: 'a', prices }),
  },
  'HttpModel#options': {
    call: (o: any) => new agent.HttpModel(adapter, o),
    base: () => ({ model: 'm', prices }),
  },
  'openAiChatAdapter#quirks': (o) => agent.openAiChatAdapter(o),
  'openAiResponsesAdapter#choices': (o) => agent.openAiResponsesAdapter(o),
  'anthropicAdapter#choices': (o) => agent.anthropicAdapter(o),
  'geminiAdapter#choices': (o) => agent.geminiAdapter(o),
  'createModelRegistry#options': (o) => agent.createModelRegistry(o),
  'openMcpServer#options': { call: (o: any) => agent.openMcpServer(o), base: mcpServer },
  'defineTool#definition': {
    call: (o: any) => agent.defineTool(o),
    base: () => ({
      name: 'a',
      description: 'b',
      parameters: { type: 'object', properties: { any: {} }, anyOf: [{}], items: {} },
      execute: () => 'c',
    }),
  },
  'processExecutor#options': (o) => agent.processExecutor(o),
  'autoExecutor#options': (o) => agent.autoExecutor(o),
  'bubblewrapExecutor#options': (o) => agent.bubblewrapExecutor(o),
  'bubblewrapProblem#options': (o) => agent.bubblewrapProblem(o),
  'openWorkspace#options': (o) => agent.openWorkspace(tmpdir(), o),
  'commandGoal#goal': {
    call: (o: any) => agent.commandGoal(o, tmpdir()),
    base: () => ({ name: 'shell', command: 'true' }),
  },
}

const testingCalls: Record<string, Call | OptionCall> = {
  'evaluate#options': {
    call: (o: any) => testing.evaluate(o),
    base: () => ({
      tasks: [{ name: 'a', request: {} }], models: ['m'], engine: () => Promise.reject(new Error()),
    }),
  },
  'ScriptedModel#options': {
    call: (o: any) => new testing.ScriptedModel([], o),
    base: () => ({ prices }),
  },
  'ScriptedModel#steps': {
    call: (o: any) => new testing.ScriptedModel(o),
    base: () => [{ calls: [{ tool: 'bash' }] }],
  },
  'testObjectStore#options': (o) =>
    testing.testObjectStore('x', () => Promise.resolve(new agent.MemoryStore().objects), o),
  'testRunStore#options': (o) => testing.testRunStore('x', () => Promise.resolve(store), o),
  'testWorkspaceCopies#options': (o) =>
    testing.testWorkspaceCopies('x', () => Promise.reject(new Error('not opened')), o),
}

const runs = new server.RunServiceClient({ baseUrl: URL, transport })
const service = { handler: () => {}, basePath: '', close: () => Promise.resolve() }
const endpoint = { url: 'https://a.test', secret: `whsec_${'A'.repeat(32)}` }

const serverCalls: Record<string, Call | OptionCall> = {
  'bearerKeys#keys': (o) => server.bearerKeys(o),
  'RunServiceClient#options': {
    call: (o: any) => new server.RunServiceClient(o),
    base: () => ({ baseUrl: URL }),
  },
  'RunServiceClient.inProcess#options': (o) => server.RunServiceClient.inProcess(service, o),
  'RunServiceClient.create#options': (o) => runs.create({ goal: 'x' }, o),
  'RunServiceClient.list#filter': (o) => runs.list(o),
  'RunServiceClient.list#call': (o) => runs.list({}, o),
  'RunServiceClient.runs#filter': (o) => first(runs.runs(o)),
  'RunServiceClient.runs#call': (o) => first(runs.runs({}, o)),
  'RunServiceClient.get#call': (o) => runs.get(RUN, o),
  'RunServiceClient.tree#call': (o) => runs.tree(RUN, o),
  'RunServiceClient.resume#call': (o) => runs.resume(RUN, { decision: 'approve' }, o),
  'RunServiceClient.abort#call': (o) => runs.abort(RUN, o),
  'RunServiceClient.retry#call': (o) => runs.retry(RUN, o),
  'RunServiceClient.fork#options': (o) => runs.fork(RUN, {}, o),
  'RunServiceClient.message#options': (o) => runs.message(RUN, { text: 'x' }, o),
  'RunServiceClient.update#options': (o) => runs.update(RUN, { may_change: [] }, o),
  'RunServiceClient.checkpoints#call': (o) => runs.checkpoints(RUN, o),
  'RunServiceClient.checkFiles#call': (o) => runs.checkFiles(RUN, o),
  'RunServiceClient.changes#options': (o) => runs.changes(RUN, o),
  'RunServiceClient.patch#options': (o) => runs.patch(RUN, o),
  'RunServiceClient.files#options': (o) => runs.files(RUN, '', o),
  'RunServiceClient.file#options': (o) => runs.file(RUN, 'x', o),
  'RunServiceClient.image#options': (o) => runs.image(RUN, o),
  'RunServiceClient.restore#call': (o) => runs.restore(RUN, { checkpoint_id: 'x' }, o),
  'RunServiceClient.apply#call': (o) => runs.apply(RUN, {}, o),
  'RunServiceClient.discard#call': (o) => runs.discard(RUN, o),
  'RunServiceClient.delete#call': (o) => runs.delete(RUN, o),
  'RunServiceClient.events#options': (o) => first(runs.events(RUN, o)),
  'RunServiceClient.wait#options': (o) => runs.wait(RUN, o),
  'RunServiceClient.models#call': (o) => runs.models(o),
  'RunServiceClient.folders#call': (o) => runs.folders(undefined, o),
  'RunServiceClient.resolve#call': (o) => runs.resolve({ goal: 'x' }, o),
  'RunServiceClient.demo#call': (o) => runs.demo(o),
  'RunServiceClient.goals#call': (o) => runs.goals(o),
  'RunServiceClient.health#call': (o) => runs.health(o),
  'drainOnSignal#options': (o) => server.drainOnSignal(service, [], o),
  'ProblemError#options': (o) => new server.ProblemError(400, 'x', 'y', o),
  'createRunService#options': {
    call: (o: any) => server.createRunService(o),
    base: (names) => ({
      engine: { store, roots, mcpServers: [mcpServer(names)] },
      webhooks: { directory: tmpdir(), endpoints: [endpoint] },
    }),
  },
}

const returned: Record<string, Call> = {
  'RunService.close#options': async (o) =>
    (await server.createRunService({ engine: new FakeEngine() })).close(o),
  'Workspace.resolve#options': async (o) => (await workspace()).resolve('.', o),
  'Workspace.readFile#options': async (o) => (await workspace()).readFile('a', o),
  'Workspace.list#options': async (o) => (await workspace()).list('.', o),
}

/** By `module.Export.method#parameter`. */
export const optionCalls: ReadonlyMap<string, OptionCall> = new Map(
  Object.entries({
    http: httpCalls(),
    ws: wsCalls,
    agent: agentCalls,
    'agent/testing': testingCalls,
    server: serverCalls,
    '': returned,
  }).flatMap(([module, calls]) =>
    Object.entries(calls).map(([name, call]) => [
      module === '' ? name : `${module}.${name}`,
      typeof call === 'function' ? { call } : call,
    ]),
  ),
)

/** What looks like options and is not: patterns of places, with the reason. */
export const notOptions: readonly (readonly [place: RegExp, reason: string])[] = [
  [/ (.*\.)?(transport|mounts\.any|stream|store|store\.(objects|shared)|objects|executor|clock|providers\[0\]|pool|pool\.options|listen|listen\.options)( |$)/,
    'objects of the host, which may have whatever else it needs'],
  [/ (.*\.)?(tools\[0\]|tools\[0\]\.parameters|models\.any|models\.any\.prices) /,
    'tools and models of the host; those that the package makes are checked when they are made'],
  [/^ModelRegistry\.nameOf#model /, 'a model of the host, which is only looked up'],
  [/^server\.drainOnSignal#servers |^ws\.\w+\.(upgrade|connect)#request /,
    'servers and requests of Node'],
  [/(Model|ModelAdapter|HttpModel|ScriptedModel|Executor)\.\w+#(request|options|settings) /,
    'what the engine passes to models, adapters and executors'],
  [/^agent\.(foldHead#(head|record)|summarize#0|\w+Store\.append#records) /, 'stored records'],
  [/^agent\/testing\.formatEvaluation#report /, 'what evaluate() has returned'],
  [/^agent\.\w+Store\.list#query /, 'the engine calls stores, and checks what it was given'],
  [/^agent\.costOf#prices /, 'prices that were frozen in a log'],
  [/ prices\.any /, 'prices by the names of models, which test/agent/models/pricing.test.ts checks'],
  [/^agent\.ModelError#options usage /, 'what a model reports, which is made sound when it counts'],
  [/^agent\.((checkSchema|toJsonSchema)#schema|checkArguments#tool) /, 'data; defineTool() checks schemas'],
  [/\.resume#answer /, 'checked against RESUME_SCHEMA, as over HTTP'],
  [/^server\.RunServiceClient\.(create|resolve|fork|restore|apply)#request |\.message#message /,
    'checked by the service against its schemas'],
  [
    /^agent\.FileOperationError|^http\.ProxyError|^server\.RunServiceError/,
    'errors that only the package makes',
  ],
  [/#options errors\[0\] /, 'copied into the response, where a client ignores unknown fields'],
]
