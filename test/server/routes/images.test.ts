/** Images of a run by REST: only what they are, and never a document. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnknownRunError, type ImagePart } from 'runwright/agent'
import { RunServiceClient } from 'runwright/server'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'
import { gif, png } from '../../helpers/images.js'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

const part = (media_type: ImagePart['media_type'], bytes: Buffer): ImagePart => ({
  media_type, data: bytes.toString('base64'),
})

test('an image has its own type, and browsers must not make a document of it', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.kept.set(3, [part('image/png', png()), part('image/gif', gif())])
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/images`
  for (const [index, type, length] of [[0, 'image/png', 64], [1, 'image/gif', 32]] as const) {
    const { status, headers } = await opened.call('GET', `${path}?event=3&index=${index}`)
    assert.equal(status, 200)
    assert.deepEqual(
      [headers['content-type'], headers['content-length'], headers['x-content-type-options']],
      [type, String(length), 'nosniff'],
    )
    assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox")
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
  }
})

for (const { query, status, code } of [
  { query: '', status: 404, code: 'image_not_found' },
  { query: '?event=3&index=1', status: 404, code: 'image_not_found' },
  { query: '?event=4', status: 404, code: 'image_not_found' },
  { query: '?event=0', status: 422, code: 'validation' },
  { query: '?event=3&index=8', status: 422, code: 'validation' },
  { query: '?event=x', status: 422, code: 'validation' },
  { query: '?seq=3', status: 422, code: 'validation' },
]) {
  test(`an image at "${query}" is ${status}`, async () => {
    const engine = new FakeEngine()
    const run = engine.add()
    engine.kept.set(3, [part('image/png', png())])
    await using opened = await openService({ engine })
    const answer = await opened.call('GET', `/api/runs/${run}/images${query}`)
    assert.equal(answer.status, status)
    if (code !== 'validation') assert.equal(answer.json.code, code)
  })
}

test('an image is sent to those who accept its type', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.kept.set(3, [part('image/png', png())])
  await using opened = await openService({ engine })
  const path = `/api/runs/${run}/images?event=3`
  for (const [accept, status] of [
    ['image/*', 200], ['image/png', 200], ['image/gif', 406], ['text/html', 406],
  ] as const) {
    const answer = await opened.call('GET', path, { headers: { accept } })
    assert.equal(answer.status, status, accept)
  }
})

test('a client reads the images of a run', async () => {
  const engine = new FakeEngine()
  const run = engine.add()
  engine.kept.set(1, [part('image/gif', gif())])
  engine.kept.set(3, [part('image/gif', gif()), part('image/png', png())])
  await using opened = await openService({ engine })
  await using runs = RunServiceClient.inProcess(opened.service)
  const { mediaType, content } = await runs.image(run, { event: 3, index: 1 })
  assert.deepEqual([mediaType, Buffer.from(content)], ['image/png', png()])
  assert.deepEqual((await runs.image(run)).mediaType, 'image/gif')
  const refused = { name: 'RunServiceError', code: 'image_not_found' }
  await assert.rejects(runs.image(run, { event: 2 }), refused)
})

test('the engine has the images of a request, and only for its tenant', async (t) => {
  const base = testProvider(() => ({}))
  const sighted = {
    ...base,
    create: (name: string) => ({ ...base.create(name), takesImages: true }),
  }
  const { engine } = await openEngine(t, { providers: [sighted] })
  const given = part('image/png', png(20, 30, 500))
  const request = { goal: 'shell: false', max_iterations: 1, images: [given] }
  const { details } = await runToEnd(engine, request)
  assert.deepEqual(await engine.images(details.run_id, 1), [given])
  assert.deepEqual(await engine.images(details.run_id, 2), [])
  assert.deepEqual(await engine.images(details.run_id, 9_999), [])
  const other = { owner: { id: 'eve', tenant: 'other' } }
  await assert.rejects(engine.images(details.run_id, 1, other), UnknownRunError)
})
