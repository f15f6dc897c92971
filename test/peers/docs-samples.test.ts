/** Samples of the documents that need packages of others; the rest is in test/docs-samples. */
import { test } from 'node:test'
import { blocks, isModule, needsPeers, SampleRunner } from '../docs-samples/runner.js'
import { noPostgres, startPostgres } from './postgres/postgres.js'

const samplesOf = (document: string) =>
  blocks.filter((block) => block.document === document && isModule(block) && needsPeers(block))

test('the samples of docs/scaling.md do what they say', { skip: noPostgres }, async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.remove())
  const url = `postgres://runwright@127.0.0.1:${postgres.port}/postgres`
  const runner = await SampleRunner.open(['pg'], { DATABASE_URL: url })
  t.after(() => runner.close())
  await runner.runModules(samplesOf('docs/scaling.md'))
})

test('the tracer of docs/observability.md brings runs to OpenTelemetry', async (t) => {
  const runner = await SampleRunner.open(['@opentelemetry'])
  t.after(() => runner.close())
  await runner.runModules(samplesOf('docs/observability.md'))
})

test('the SDK of docs/http-client.md runs on client.fetch', async (t) => {
  const runner = await SampleRunner.open(['openai'])
  t.after(() => runner.close())
  await runner.runModules(samplesOf('docs/http-client.md'))
})

test('the tool of docs/tools.md has its arguments validated by zod', async (t) => {
  const runner = await SampleRunner.open(['zod'])
  t.after(() => runner.close())
  await runner.runModules(samplesOf('docs/tools.md'))
})
