import assert from 'node:assert/strict'
import { test } from 'node:test'
import SwaggerParser from '@apidevtools/swagger-parser'
import { Parser } from '@asyncapi/parser'
import { MemoryStore } from 'runwright/agent'
import { AsyncClient, HandlerTransport } from 'runwright/http'
import { createRunService } from 'runwright/server'

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
    const told = diagnostics
      .filter(({ code }) => code !== 'asyncapi-latest-version')
      .map(
        ({ severity, code, message, path }) =>
          `${severity} ${code}: ${message} at ${path.join('.')}`,
      )
    assert.deepEqual(told, [])
    assert.equal(document?.channels().all().length, 2)
    assert.ok((document?.messages().all().length ?? 0) >= 20)
  })
}
