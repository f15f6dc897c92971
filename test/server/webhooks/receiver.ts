import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import type { WebhookOptions } from 'runwright/server'
import type { Clock } from '../../../lib/internal/time.js'
import { Webhooks } from '../../../lib/server/webhooks/webhooks.js'
import { scratch } from '../../helpers/engine.js'
import { serve } from '../../helpers/serve.js'
import type { FakeEngine } from '../fake-engine.js'

export const KEY: Buffer = Buffer.alloc(32, 7)
export const SECRET: string = `whsec_${KEY.toString('base64')}`

export interface Received {
  readonly id: string
  readonly body: any
  readonly raw: string
  readonly headers: IncomingMessage['headers']
}

/** A receiver that answers with a function, and the deliveries that it got. */
export async function openReceiver(
  t: TestContext,
  answer: (received: Received, response: ServerResponse) => void = (_, response) => response.end(),
): Promise<{ url: string; received: Received[]; until: (count: number) => Promise<void> }> {
  const received: Received[] = []
  let wake = (): void => {}
  const served = await serve((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks).toString()
      const { headers } = request
      const one = { id: String(headers['webhook-id']), body: JSON.parse(raw), raw, headers }
      received.push(one)
      answer(one, response)
      wake()
    })
  })
  t.after(() => served.close())
  const until = async (count: number): Promise<void> => {
    while (received.length < count) await new Promise<void>((resolve) => (wake = resolve))
  }
  return { url: `${served.origin}/hook?key=s3cret`, received, until }
}

/** What a test has opened; closed before its folders are removed. */
const opened = new WeakMap<TestContext, Webhooks[]>()

/** A folder for the progress of deliveries. */
export function progressFolder(t: TestContext): string {
  if (!opened.has(t)) {
    const all: Webhooks[] = []
    opened.set(t, all)
    t.after(() => Promise.all(all.map((webhooks) => webhooks.close())))
  }
  return scratch(t)
}

export async function openWebhooks(
  t: TestContext,
  engine: FakeEngine,
  url: string,
  { clock, ...more }: Partial<WebhookOptions> & { readonly clock?: Clock } = {},
): Promise<Webhooks> {
  const directory = more.directory ?? progressFolder(t)
  const webhooks = await Webhooks.open(
    engine,
    {
      endpoints: [{ url, secret: SECRET, allowPrivate: true }],
      retryMs: 1,
      onFailure: () => {},
      ...more,
      directory,
    },
    { clock },
  )
  opened.get(t)!.push(webhooks)
  return webhooks
}
