/** Every text of every request: the description of the service says where there are some. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { MemoryStore, type JsonSchema } from 'runwright/agent'
import { testProvider } from '../helpers/engine.js'
import { ODD, textPlaces, UNSTORABLE } from '../helpers/schema-texts.js'
import { openService, type Answer, type Opened } from './open-service.js'

interface Described {
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly schema: JsonSchema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: JsonSchema }>> }
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-test-')))
const root = join(folder, 'root')
mkdirSync(root)
const SAID = /NUL or half of a character/
let opened: Opened
let operations: readonly (readonly [method: string, path: string, operation: Described])[]

before(async () => {
  opened = await openService({
    engine: {
      store: new MemoryStore(),
      roots: [root],
      workspaceFolder: join(folder, 'copies'),
      delegation: {},
      providers: [testProvider(() => ({ text: 'nothing to do' }))],
      defaultModel: 'test:m',
    },
  })
  const body = { goal: 'shell: false', hitl_enabled: true }
  const { json } = await opened.call('POST', '/api/runs', { body })
  const waits = async (): Promise<boolean> =>
    (await opened.call('GET', `/api/runs/${json.run_id}`)).json.status === 'awaiting_human'
  while (!(await waits()));
  const api = (await opened.call('GET', '/api/openapi.json')).json
  operations = Object.entries<Record<string, Described>>(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'parameters')
      .map(([method, operation]) => {
        const full = path.replace('{run_id}', json.run_id).replace('{path}', 'a')
        return [method.toUpperCase(), full, operation] as const
      }),
  )
})
after(async () => {
  await opened[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function detailOf(answer: Answer, pointer: string): string | undefined {
  const { errors = [] } = answer.json as { errors?: { pointer: string; detail: string }[] }
  return errors.find((error) => error.pointer === pointer)?.detail
}

test('no text of a body, and no name in it, has NUL or half of a character', async () => {
  let places = 0
  for (const [method, path, { requestBody }] of operations) {
    const schema = requestBody?.content['application/json']?.schema
    for (const place of schema === undefined ? [] : textPlaces(schema)) {
      places += 1
      // A half may stand for a byte in the name of a file.
      const isName = place.pointer === '/paths/0'
      for (const text of isName ? UNSTORABLE.filter((one) => !/\udc80/.test(one)) : UNSTORABLE) {
        const answer = await opened.call(method, path, { body: place.with(text) as object })
        const what = `${method} ${path} ${place.pointer} ${JSON.stringify(text)}: ${answer.text}`
        assert.equal(answer.status, 422, what)
        assert.equal(answer.json.code, 'invalid_request', what)
        // Nothing of held-out tests is named, not even their paths.
        const pointer = place.pointer.replace(/^(\/holdout\/files).*/, '$1')
        assert.ok(detailOf(answer, pointer) !== undefined, what)
      }
    }
  }
  assert.ok(places > 60, `${places} places`)
  assert.equal((await opened.call('GET', '/api/runs')).json.length, 1)
})

test('a text that only looks odd is not refused as one that cannot be stored', async () => {
  for (const [method, path, { requestBody }] of operations) {
    const schema = requestBody?.content['application/json']?.schema
    // The decision of a gate would end its run.
    const isLeftOut = schema === undefined || path.endsWith('/resume')
    for (const place of isLeftOut ? [] : textPlaces(schema)) {
      const given = place.with(ODD.join('')) as { readonly goal?: string }
      const body = given.goal === 'x' ? { ...given, goal: 'shell: true' } : given
      const answer = await opened.call(method, path, { body })
      assert.doesNotMatch(answer.text, SAID, `${method} ${path} ${place.pointer}`)
      assert.notEqual(answer.status, 500, `${method} ${path} ${place.pointer} ${answer.text}`)
    }
  }
})

test('no parameter of a query has NUL', async () => {
  let names = 0
  for (const [method, path, { parameters = [] }] of operations) {
    for (const { name, in: where, schema } of parameters) {
      if (where !== 'query') continue
      names += 1
      const isPrefix = schema.additionalProperties !== undefined
      const queries = isPrefix ? [`${name}.a=%00`, `${name}.%00=a`] : [`${name}=a%00b`]
      for (const query of queries) {
        const answer = await opened.call(method, `${path}?${query}`)
        assert.equal(answer.status, 422, `${method} ${path} ${query}: ${answer.text}`)
        assert.match(detailOf(answer, `/${name}`) ?? '', SAID, `${path} ${query} ${answer.text}`)
      }
    }
  }
  assert.ok(names > 15, `${names} parameters`)
})

test('a path to be applied may have what stands for a byte in its name', async () => {
  const [[, apply] = []] = operations.filter(([, path]) => path.endsWith('/apply'))
  const answer = await opened.call('POST', apply!, { body: { paths: ['a\udcff'] } })
  assert.equal(answer.json.code, 'no_changes')
  const refused = await opened.call('POST', apply!, { body: { paths: ['a\udc7f'] } })
  assert.match(detailOf(refused, '/paths/0') ?? '', SAID)
})
