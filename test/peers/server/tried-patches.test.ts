/** A call of `try_patches` in the page of a run, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext } from 'playwright-core'
import type { AgentEvent } from 'runwright/agent'
import { assertAccessible } from './accessible.js'
import { openBrowser, resize } from './browser.js'
import { openFake, openRun, type FakeService } from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

type Call = Extract<AgentEvent, { kind: 'tool_call' }>['payload']
type Result = Extract<AgentEvent, { kind: 'tool_result' }>['payload']

const patch = (n: number) => ({
  edits: [{ path: `src/f${n}.js`, old_text: `a < ${n}\n`, new_text: `a <= <b>${n}</b>\n` }],
  note: `note ${n}`,
})

function begin({ engine, runId }: FakeService, count: number): void {
  const patches = Array.from({ length: count }, (_, i) => patch(i + 1))
  const args = { patches, command: 'node --test' }
  engine.append(runId, 'tool_call', { call_id: 'c', tool: 'try_patches', args } as unknown as Call)
}

function end({ engine, runId }: FakeService, count: number): void {
  const outcomes = Array.from({ length: count }, (_, i) =>
    i === 1
      ? 'Patch 2: exit code 0 (180 ms)\n  @@ -2,1 +2,1 @@\n  -test a fails\n  +test a passes now'
      : `Patch ${i + 1}: exit code 1 (190 ms), same output`,
  )
  const head = count === 0
    ? 'The command ran as it is, as there is no patch.'
    : `${count} patches tried, 1 with exit code 0, 0 reached the time limit`
  const base = 'Without a patch: exit code 1 (210 ms)\n  test a fails'
  engine.append(runId, 'tool_result', {
    call_id: 'c', tool: 'try_patches', output: [head, base, ...outcomes].join('\n'), exit_code: 0,
    duration_ms: 3_100,
  } as Result)
}

test('patches are shown with their diffs, then with what came of them', async (t) => {
  const fake = await openFake(t, {})
  begin(fake, 12)
  const page = await openRun(t, browser, fake)
  const entry = page.locator('.entry[aria-label=Tool]')
  await entry.getByText('tries 12 patches').waitFor()
  const list = entry.locator('details.tried')
  // Folded, and open before its result comes: what is in it comes anew.
  assert.equal(await list.locator('.change').count(), 0)
  await list.locator('summary').first().click()
  await list.locator('.change').nth(11).waitFor()

  end(fake, 12)
  await entry.getByText('12 patches: 1 passed').click()
  const patches = list.locator('.change')
  await patches.nth(11).waitFor()
  const second = (await patches.nth(1).locator('summary').innerText()).replaceAll(/\s+/g, ' ')
  assert.equal(second, '2 src/f2.js a < 2 → a <= <b>2</b> exit code 0 (180 ms)')
  assert.equal(await list.locator('.fact.good').count(), 1)
  await patches.nth(1).locator('summary').click()
  assert.equal(await patches.nth(1).locator('.diff').textContent(), '-a < 2\n+a <= <b>2</b>\n')
  await patches.nth(1).getByText('+test a passes now').waitFor()
  await patches.nth(1).getByText('note 2').waitFor()
  await assertAccessible(page, 'tried patches')
  await resize(page, { width: 360, height: 740 })
  await assertAccessible(page, 'tried patches on a narrow page')
})

test('a few patches are open from the start', async (t) => {
  const fake = await openFake(t, {})
  begin(fake, 3)
  end(fake, 3)
  const page = await openRun(t, browser, fake)
  await page.locator('details.tried[open] .change').nth(2).waitFor()
  assert.equal(await page.locator('.fact.good').count(), 1)
  await assertAccessible(page, 'a few tried patches')
})

test('without a patch, the command is said to run in a copy', async (t) => {
  const fake = await openFake(t, {})
  begin(fake, 0)
  end(fake, 0)
  const page = await openRun(t, browser, fake)
  const entry = page.locator('.entry[aria-label=Tool]')
  await entry.getByText('runs a command in a copy').waitFor()
  assert.equal(await entry.locator('code.args').innerText(), 'node --test')
  assert.equal(await entry.locator('details.tried').count(), 0)
  await assertAccessible(page, 'a command in a copy')
})
