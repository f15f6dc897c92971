/**
 * A minimal Model Context Protocol server over standard input and output. Its first argument is its
 * mode. Plain JavaScript, so that it starts fast and without a loader.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { spawn } from 'node:child_process'

const [, , mode = 'good', extra = ''] = process.argv
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const tool = (name, more = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object' },
  ...more,
})

const tools = [
  tool('echo', {
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  }),
  tool('crash'),
  tool('hang'),
  tool('env'),
  tool('fail'),
  tool('refuse'),
  tool('slow'),
  tool('pictures'),
  tool('lie', {
    outputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  }),
  tool('grow'),
  tool('cancelled'),
  tool('ask'),
  tool('huge'),
  tool('write'),
]
const cancelled = []
let grown = false
let asked = null

function list(cursor) {
  switch (mode) {
    case 'pages': {
      const page = Number(cursor ?? 0)
      return { tools: [tool(`t${page}`)], ...(page < 4 && { nextCursor: String(page + 1) }) }
    }
    case 'endless':
      return { tools: [tool(`t${cursor ?? 0}`)], nextCursor: String(Number(cursor ?? 0) + 1) }
    case 'names':
      return {
        tools: [
          tool('a b'),
          tool('a.b'),
          tool('x'.repeat(200)),
          tool('ok'),
          tool('ok'),
          tool(''),
          { name: 7 },
          null,
          tool('long', { description: `\u001b[31m${'d'.repeat(10_000)}` }),
          tool('deep', { inputSchema: deep(100) }),
          tool('none', { inputSchema: 'x' }),
        ],
      }
    case 'tasks':
      return {
        tools: [
          tool('plain'),
          tool('maybe', { execution: { taskSupport: 'optional' } }),
          tool('later', { execution: { taskSupport: 'required' } }),
          tool('much later', { execution: { taskSupport: 'required' } }),
        ],
      }
    default:
      return { tools: grown ? [...tools, tool('grown')] : tools }
  }
}

function deep(n) {
  return n === 0 ? { type: 'string' } : { type: 'object', properties: { a: deep(n - 1) } }
}

function call({ name, arguments: args, _meta }, id) {
  switch (name) {
    case 'echo':
      return text(`${args.text}`)
    case 'write':
      writeFileSync(args.path, `${args.path}\n`)
      if (args.then === 'crash') process.exit(7)
      return text('written')
    case 'crash':
      process.stderr.write(
        `${'x'.repeat(100_000)} about to crash with ${process.env.TINY_KEY}\n`,
        () => process.exit(7),
      )
      return null
    case 'hang':
      return null
    case 'env':
      return text(JSON.stringify(process.env))
    case 'fail':
      return { ...text('it did not work'), isError: true }
    case 'refuse':
      say({ id, error: { code: -32602, message: 'wrong arguments' } })
      return null
    case 'slow':
      for (let n = 1; n <= 3; n++)
        say({
          method: 'notifications/progress',
          params: { progressToken: _meta.progressToken, progress: n },
        })
      return text('done')
    case 'pictures':
      return {
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', mimeType: 'image/png', data: 'AAAAAA==' },
          {
            type: 'resource',
            resource: { uri: 'file:///a', mimeType: 'text/plain', text: 'inside' },
          },
          { type: 'resource', resource: { uri: 'file:///b', blob: 'AAAA' } },
          { type: 'resource_link', uri: 'file:///c', name: 'c' },
          { type: 'hologram' },
        ],
      }
    case 'lie':
      return { content: [], structuredContent: { n: args.n ?? 'many' } }
    case 'grow':
      grown = true
      say({ method: 'notifications/tools/list_changed' })
      return text('grown')
    case 'cancelled':
      return text(JSON.stringify(cancelled))
    case 'ask':
      asked = id
      say({ id: 'q1', method: 'sampling/createMessage', params: {} })
      say({ id: 'q2', method: 'ping' })
      return null
    case 'huge':
      return text('y'.repeat(2_000_000))
    default:
      say({ id, error: { code: -32602, message: `there is no tool ${name}` } })
      return null
  }
}

if (mode === 'stubborn') {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1_000_000)
  spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
    detached: true,
    stdio: 'ignore',
  }).unref()
}
if (mode === 'dies' || (mode === 'late' && !existsSync(extra))) process.exit(3)
if (mode === 'noise') process.stdout.write('Listening!\n{"not": "rpc"}\n[]\nnull\n')

/** What a server with resources answers; with an extra argument, it has no templates. */
const library = {
  'resources/list': ({ cursor }) => ({
    result: {
      resources: cursor
        ? [{ uri: 'memo:///logo', name: 'logo', mimeType: 'image/png' }, { name: 'no uri' }, null]
        : [{ uri: 'memo:///a', name: 'a', title: 'First\nmemo', description: 'About \u202ea.' }],
      ...(cursor === undefined && { nextCursor: '1' }),
    },
  }),
  'resources/templates/list': () =>
    extra === ''
      ? { result: { resourceTemplates: [{ uriTemplate: 'memo:///{name}', name: 'any' }] } }
      : { error: { code: -32601, message: 'Method not found' } },
  'resources/read': ({ uri }) => {
    const binary = { uri, blob: Buffer.from('{"n":1}').toString('base64') }
    switch (uri) {
      case 'memo:///a':
        return { result: { contents: [{ uri, mimeType: 'text/plain', text: 'what a says' }] } }
      case 'memo:///logo':
        return { result: { contents: [{ ...binary, mimeType: 'image/png' }] } }
      case 'memo:///json':
        return { result: { contents: [{ ...binary, mimeType: 'application/json' }] } }
      default:
        return { error: { code: -32002, message: 'Resource not found' } }
    }
  },
  'prompts/list': () => ({
    result: {
      prompts: [
        { name: 'review', description: 'Reviews code.', arguments: [{ name: 'code', required: true }] },
        { title: 'no name' },
      ],
    },
  }),
}

const answers = []
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  const { id, method, params } = message
  if (method === undefined) {
    answers.push(message)
    if (answers.length === 2) say({ id: asked, result: text(JSON.stringify(answers)) })
  } else if (method === 'initialize') {
    if (mode === 'mute') return
    const protocolVersion =
      mode === 'old' ? '2024-11-05' : mode === 'alien' ? '1999-01-01' : params.protocolVersion
    say({
      id,
      result: {
        protocolVersion,
        capabilities: mode === 'resources' ? { resources: {}, prompts: {} } : { tools: {} },
        serverInfo: { name: 'tiny', version: extra },
      },
    })
  } else if (mode === 'resources' && Object.hasOwn(library, method)) {
    say({ id, ...library[method](params) })
  } else if (method === 'tools/list') say({ id, result: list(params?.cursor) })
  else if (method === 'tools/call') {
    const result = call(params, id)
    if (result !== null) say({ id, result })
  } else if (method === 'notifications/cancelled') cancelled.push(params.requestId)
})
