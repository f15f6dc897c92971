import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { parseUrl, warnOfFailure } from '../../../lib/server/webhooks/options.js'

test('a token in the address of a webhook is masked, and no warning shows it', async () => {
  const token = '8fK2mQ7xZp41LrTc9wVb'
  const url = `https://hooks.test/services/${token}?key=${token}x&kind=all`
  const endpoint = { url, secret: 'not read here' }
  parseUrl(endpoint)
  const text = new Redactor().text(`sent to ${url}`)
  assert.ok(!text.includes(token), text)
  assert.match(text, /hooks\.test\/services\/.*kind=all/)
  const warned = once(process, 'warning') as Promise<[Error]>
  warnOfFailure({ url, run_id: 'r', seq: 3, attempts: 1, problem: 'HTTP 500', final: false })
  const [{ message }] = await warned
  assert.match(message, /^webhook https:\/\/hooks\.test: event 3 of run r was not accepted/)
})
