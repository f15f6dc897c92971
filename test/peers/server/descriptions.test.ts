import assert from 'node:assert/strict'
import { test } from 'node:test'
import SwaggerParser from '@apidevtools/swagger-parser'
import openapiTS, { astToString } from 'openapi-typescript'
import { Parser } from '@asyncapi/parser'
import { MemoryStore } from 'runwright/agent'
import { AsyncClient, HandlerTransport } from 'runwright/http'
import { createRunService } from 'runwright/server'
import ts from 'typescript'

/** A description as a service mounted at `basePath` serves it. */
async function fetchDescription(basePath: string, name: string): Promise<string> {
  await using service = await createRunService({
    engine: { store: new MemoryStore(), roots: ['.'] },
    basePath,
  })
  await using client = new AsyncClient({
    baseUrl: `http://localhost${basePath}`,
    transport: new HandlerTransport(service.handler),
  })
  return (await client.get(`/api/${name}`)).raiseForStatus().text
}

for (const basePath of ['', '/agents']) {
  test(`the OpenAPI document at "${basePath}" is valid to swagger-parser`, async () => {
    const document = JSON.parse(await fetchDescription(basePath, 'openapi.json')) as never
    const api = await SwaggerParser.validate(document)
    assert.ok(Object.keys(api.paths ?? {}).length >= 9)
  })

  test(`the AsyncAPI document at "${basePath}" parses without warnings`, async () => {
    const text = await fetchDescription(basePath, 'asyncapi.json')
    const { document, diagnostics } = await new Parser().parse(text)
    const told = diagnostics.map(
      ({ severity, code, message, path }) =>
        `${severity} ${code}: ${message} at ${path.join('.')}`,
    )
    assert.deepEqual(told, [])
    assert.equal(document?.channels().all().length, 2)
    assert.ok((document?.messages().all().length ?? 0) >= 20)
  })
}

/** What a program relies on that follows the generated types; only the marked lines have errors. */
const PROGRAM = `
type Body<T extends keyof operations> = NonNullable<
  NonNullable<operations[T]['requestBody']>['content']['application/json']
>
export const started: Body<'createRun'>[] = [
  { goal: 'x' },
  { goal: 'x', attempts: { count: 2 }, delegation: {}, approval: { tools: {} } },
  { goal: 'x', holdout: { files: { 'a.js': '' }, command: 'node a.js' } },
  { goal: 'x', max_iterations: 3, hitl_enabled: true, project_instructions: false },
]
export const forked: Body<'forkRun'> = {}
export const applied: Body<'applyRun'> = {}
export const sent: Body<'sendMessage'> = { text: 'x' }
export const updated: Body<'updateRun'> = { may_change: ['a'] }
export const resumed: Body<'resumeRun'> = { decision: 'approve' }
export const restored: Body<'restoreRun'> = { checkpoint_id: 'c' }

export function read(details: components['schemas']['RunDetails']): [number, boolean, string] {
  const { max_iterations, hitl_enabled, approval } = details
  return [max_iterations, hitl_enabled, typeof approval === 'string' ? approval : approval.default]
}

export const empty: Body<'createRun'> = {} // wrong
export const unknown: Body<'createRun'> = { goal: 'x', hitl_enable: true } // wrong
`

/** The lines of a program in which the compiler finds errors, with what it says. */
function wrongLines(program: string): string[] {
  const path = '/program.ts'
  const host = ts.createCompilerHost({})
  const { getSourceFile } = host
  host.getSourceFile = (name, version) =>
    name === path ? ts.createSourceFile(path, program, version) : getSourceFile(name, version)
  const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2023, types: [] }
  const found = ts.getPreEmitDiagnostics(ts.createProgram([path], options, host))
  return found.map(({ start, messageText }) => {
    const line = program.slice(0, start).split('\n').length
    const text = program.split('\n')[line - 1]!
    return text.endsWith('// wrong')
      ? text
      : `${text}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
}

test('in generated types, requests may leave out what has a default; responses have it', async () => {
  const document = JSON.parse(await fetchDescription('', 'openapi.json'))
  const api = astToString(await openapiTS(document))
  const marked = PROGRAM.split('\n').filter((line) => line.endsWith('// wrong'))
  assert.equal(marked.length, 2)
  assert.deepEqual(wrongLines(api + PROGRAM), marked)
})
