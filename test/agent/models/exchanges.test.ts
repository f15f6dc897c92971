/** Exchanges with providers: what each answers, and the turn or error that results. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { AsyncClient } from 'runwright/http'
import { answering } from '../../helpers/deliveries.js'
import { recording } from './exchange.js'
import { ADAPTERS } from './exchanges/dialects.js'
import { EXCHANGES } from './exchanges/index.js'
import { RECORDINGS } from './exchanges/recordings.js'
import {
  assertOutcome, decode, fetchForm, formsOf, singleBytes, startOfEnd,
} from './exchanges/table.js'

for (const [dialect, row] of EXCHANGES) {
  test(`${dialect}: ${row.title}`, () => {
    const named = formsOf(dialect, row, true)
    assert.notEqual(named.length, 0)
    formsOf(dialect, row).forEach((form, i) => {
      const outcome = decode(dialect, row, form)
      assertOutcome(dialect, row, form, outcome)
      if (form.kind !== 'streamed') return
      assert.deepEqual(decode(dialect, row, named[i]!, singleBytes), outcome)
      const end = startOfEnd(dialect, form.text)
      if (outcome.turn === null || end === -1) return
      const cut = decode(dialect, row, form, (text) => [Buffer.from(text.slice(0, end))])
      assert.equal(cut.error?.retryable, true, 'a stream that ends too early is an error')
    })
  })
}

test('each row of the table has a title of its own', () => {
  const titles = EXCHANGES.map(([dialect, { title }]) => `${dialect}: ${title}`)
  assert.deepEqual(titles, [...new Set(titles)])
})

test('every recorded exchange is in the table, and nothing else', () => {
  const files = readdirSync(new URL('../../fixtures/models', import.meta.url))
  const named = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -5))
  assert.deepEqual(named.sort(), RECORDINGS.map(({ title }) => title).sort())
})

for (const row of RECORDINGS) {
  const { title, dialect, asks, options, unsent = [], unrecorded = {} } = row
  if (asks === undefined) continue
  test(`the request of ${title} is encoded as it was recorded`, () => {
    const { path, body } = recording(title).request
    const wire = ADAPTERS[dialect].encode(asks, {
      model: String(body['model']), stream: body['stream'] === true, ...options,
    })
    assert.ok(new URL(path, 'http://localhost').pathname.endsWith(wire.path), wire.path)
    const kept = Object.entries(body).filter(([name]) => !unsent.includes(name))
    // Gemini accepts both spellings of its field names.
    const sent = JSON.stringify(wire.body)
      .replaceAll('parametersJsonSchema', 'parameters_json_schema')
    const described = JSON.stringify(Object.fromEntries(kept))
      .replaceAll('"description":null', '"description":""')
    assert.deepEqual(JSON.parse(sent), { ...JSON.parse(described), ...unrecorded })
  })
}

for (const row of RECORDINGS) {
  const forms = formsOf(row.dialect, row)
  test(`${row.title} is fetched from a server`, async () => {
    for (const form of forms)
      assertOutcome(row.dialect, row, form, await fetchForm(row.dialect, row, form, 'at once'))
  })
}

test('byte by byte, each byte arrives alone', async () => {
  await using server = await answering([{ body: 'data: \u00e4\n\n' }], 'byte by byte')
  await using client = new AsyncClient({ transport: server.transport })
  await using response = await client.stream('GET', server.origin)
  const sizes = []
  for await (const chunk of response.iterBytes()) sizes.push(chunk.length)
  assert.deepEqual(sizes, Array.from({ length: 10 }, () => 1))
})
