/** Characters that nobody sees, in everything that the dashboard shows, in a real browser. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  MemoryStore,
  NO_USAGE,
  type AgentEvent,
  type ModelProvider,
  type ModelTurn,
} from 'runwright/agent'
import { createRunService, type RunServiceOptions } from 'runwright/server'
import { INVISIBLE_SAMPLES } from '../../helpers/invisible.js'
import { openBrowser } from './browser.js'

const ALL = Object.values(INVISIBLE_SAMPLES).join('')
/** What a request, a command or a file name can contain. */
const IN_FILES = ALL.replaceAll(/[\0\ud800]/g, '')
const shown = (place: string): string => `<${place}>${ALL}</${place}>`

/** Adds every character to everything that a model says or asks for. */
function hostileProvider(): ModelProvider {
  const turns: ModelTurn['message'][] = [
    {
      role: 'assistant',
      text: shown('text'),
      calls: [
        { call_id: 'c1', tool: 'bash', args: { command: `echo '${IN_FILES}'` } },
        { call_id: 'c2', tool: `tool${IN_FILES}`, args: { [`name${IN_FILES}`]: IN_FILES } },
        ...Object.values(INVISIBLE_SAMPLES).map((text, i) => ({
          call_id: `w${i}`,
          tool: 'write_file',
          args: {
            path: `${i}${text.replaceAll(/[\0\ud800]/g, '').slice(0, 20)}.txt`,
            content: `<content>${IN_FILES}\n`,
          },
        })),
      ],
    },
    { role: 'assistant', text: '', calls: [] },
  ]
  let next = 0
  return {
    id: 'test',
    description: shown('description'),
    isLanguageModel: false,
    suggestions: ['m'],
    create: () => ({
      name: 'test:m',
      isLanguageModel: false,
      contextWindow: null,
      prices: null,
      complete: async () => {
        const message = turns[next++]
        if (message === undefined) throw new Error(shown('error'))
        return {
          message,
          reasoning: shown('reasoning'),
          usage: NO_USAGE,
          stop: message.calls.length > 0 ? 'tool_calls' : 'end',
        }
      },
    }),
  }
}

/** A service with the hostile provider, and a context of a browser; both end with the test. */
async function openService(t: TestContext, options: Partial<RunServiceOptions> = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-peer-')))
  const service = await createRunService({
    engine: { store: new MemoryStore(), roots: [root], providers: [hostileProvider()] },
    ...options,
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const context = await openBrowser(t)
  t.after(async () => {
    await context.close()
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
    rmSync(root, { recursive: true, force: true })
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { base, context, engine: service.engine }
}

test('no invisible character reaches the page', async (t) => {
  const { base, context, engine } = await openService(t, {
    authorize: () => ({ id: `ann${IN_FILES}`, tenant: null }),
  })
  const post = async (path: string, body: object): Promise<Record<string, never>> => {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await fetch(`${base}/api/${path}`, init)
    const text = await response.text()
    assert.ok(response.ok, text)
    return JSON.parse(text) as Record<string, never>
  }

  // Every text and attribute that is ever in the document, from its first moment on.
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const found: string[] = []
  await page.exposeFunction('found', (place: string) => found.push(place))
  await page.addInitScript((characters: string) => {
    const bad = new Set(characters)
    const check = (text: string | null, place: string): void => {
      const first = [...(text ?? '')].find((character) => bad.has(character))
      const report = (globalThis as unknown as { found(place: string): void }).found
      if (first !== undefined) report(`U+${first.codePointAt(0)?.toString(16)} in ${place}: ${text}`)
    }
    const visit = (node: Node): void => {
      if (node instanceof Text) check(node.data, `<${node.parentElement?.localName}>`)
      if (!(node instanceof Element)) return
      for (const { name, value } of node.attributes) check(value, `${node.localName}[${name}]`)
      if (node instanceof HTMLInputElement) check(node.value, 'an input')
      node.childNodes.forEach(visit)
    }
    new MutationObserver((records) => {
      for (const { target, addedNodes } of records) {
        if (target.nodeType !== Node.DOCUMENT_NODE) visit(target)
        addedNodes.forEach(visit)
      }
      check(document.title, 'the title')
    }).observe(document, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    })
  }, ALL)

  const goal = `shell: test -e never # ${IN_FILES}`
  const run = await post('runs', {
    goal,
    model_name: 'test:m',
    approval: 'writes',
    metadata: { note: IN_FILES },
    max_iterations: 3,
  })
  const id = String(run['run_id'])
  await page.goto(`${base}/#/runs/${id}`)
  const gate = page.locator('section.gate')
  await gate.getByRole('heading', { name: 'May these tools run?' }).waitFor()
  assert.match(String(await gate.textContent()), /echo '\\u202a/)
  assert.match(await page.title(), /^Waiting for you · shell: test -e never # \\u202a/)
  await page.getByText('<text>').first().waitFor()
  const caller = { owner: { id: `ann${IN_FILES}`, tenant: null } }
  for await (const batch of await engine.subscribe(id, {}, caller)) {
    for (const { kind, json } of batch) {
      if (kind !== 'human_check_required') continue
      const { payload } = JSON.parse(json) as AgentEvent & { kind: typeof kind }
      const edits = { c1: { args: { command: `echo edited '${IN_FILES}'` } } }
      await post(`runs/${id}/resume`, {
        decision: 'approve',
        gate_id: payload.gate_id,
        feedback: `<feedback>${IN_FILES}</feedback>`,
        ...(payload.calls?.[0]?.call_id === 'c1' ? { edits } : {}),
      })
    }
  }
  await page.locator('.run-head .chip.failed').waitFor()
  await page.getByRole('button', { name: 'Unfold all' }).click()
  for (const place of ['text', 'reasoning', 'error', 'feedback']) {
    const locator = page.locator('main').getByText(`<${place}>`)
    await locator.first().waitFor({ state: 'attached' })
    assert.match(String(await locator.first().textContent()), /\\u202a/, place)
  }
  // Wherever it is: only what is near the window has elements.
  await page.getByLabel('Find in this run').fill('echo edited')
  await page.locator('main').getByText('echo edited').first().waitFor({ state: 'attached' })
  await page.getByLabel('Find in this run').fill('')
  await page.locator('.files button.changed').first().click()
  await page.getByText(/entr(y|ies) found/).waitFor()
  await page.locator('main').getByText('<content>').first().waitFor({ state: 'attached' })
  await page.goto(`${base}/#/new`)
  await page.getByLabel('Model', { exact: true }).selectOption('test:m')
  await page.locator('#model-kind').getByText('<description>').waitFor()
  await page.goto(`${base}/#/`)
  await page.locator('nav .run-goal').first().waitFor()
  assert.deepEqual([...new Set(found)], [])
})

test('goals in right-to-left scripts read as they should', async (t) => {
  const { base, context, engine } = await openService(t)
  const page = await context.newPage()
  for (const goal of ['תקן את הבדיקות', 'آزمون‌ها را درست کن']) {
    const { details } = await engine.create({ goal, check: 'false', model_name: 'test:m' })
    await page.goto(`${base}/#/runs/${details.run_id}`)
    const title = page.getByRole('heading', { level: 1, name: goal })
    await title.waitFor()
    assert.equal(await title.evaluate((element) => getComputedStyle(element).direction), 'rtl')
    assert.equal(await title.textContent(), goal)
    assert.ok((await page.title()).includes(goal))
  }
})
