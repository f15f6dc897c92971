/** Rare states of Changes, Files, Apply and Restore in a real browser, by keyboard, with axe. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { oneOfEach } from '../../helpers/choice.js'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import {
  appliedAs, changed, changesOf, listOf, openRun, problem, twoIterations, type Answer,
  type FakeService,
} from './fake-workspace.js'

const HOSTILE = '<img src=x onerror=alert(1)>'
const NAMES = [`${HOSTILE}.html`, 'bidi\u202e\u0007.js', 'latin\udce9.txt', 'javascript:alert(1)']

/** What the service refuses with, and what the page does then. */
const REFUSALS: readonly Answer[] = [
  problem(409, 'checkpoints_off', 'this run has no checkpoints'),
  problem(409, 'not_kept', 'the content was not kept', ['a.js']),
  problem(403, 'redacted', 'config.js holds secrets', ['config.js']),
  problem(422, 'workspace_too_large', 'the folder is too large to copy'),
  problem(422, 'unsupported', 'checkpoints are not supported on Windows'),
]
const DETAIL = REFUSALS.map(({ json }) => (json as { detail: string }).detail)

/** Tabs to a control and presses a key: whatever the test uses is reached without a mouse. */
async function press(page: Page, name: string, key = 'Enter'): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const text = await page.evaluate(() => {
      const element = document.activeElement as HTMLInputElement | null
      if (element === null || !element.matches('a, button, input, summary')) return ''
      return element.labels?.[0]?.textContent || element.textContent || ''
    })
    if (text.includes(name)) return await page.keyboard.press(key)
    await page.keyboard.press('Tab')
  }
  assert.fail(`${name} is not reached by keyboard`)
}

async function elements(page: Page): Promise<number> {
  return await page.evaluate(() => document.querySelectorAll('*').length)
}

function pending(fake: FakeService): void {
  fake.set({ workspace: 'isolated', cwd: '/home/ann/app' })
  fake.engine.finish(fake.runId)
  fake.set({ changes: 'pending' })
}

for (const width of oneOfEach([360, 1440], () => 'width')) {
  const options = { viewport: { width, height: 800 }, reducedMotion: 'reduce' as const }

  test(`refusals of changes and files are said at ${width} px`, async (t) => {
    const context = await openBrowser(t, options)
    let refusal = REFUSALS[0]!
    const fake = await twoIterations(t, { changes: () => refusal, files: () => refusal })
    for (const [i, each] of REFUSALS.entries()) {
      refusal = each
      for (const tab of ['/changes', '/files']) {
        const page = await openRun(t, context, fake, tab)
        await page.locator('main').getByText(DETAIL[i]!).waitFor()
        await assertAccessible(page, `${DETAIL[i]} ${tab}`)
        await page.close()
      }
    }
  })

  test(`apply and restore are refused by name, by keyboard, at ${width} px`, async (t) => {
    const context = await openBrowser(t, options)
    const refusals: Answer[] = []
    const bodies: unknown[] = []
    const fake = await twoIterations(t, {
      changes: () => ({ json: changesOf(...NAMES.map((name) => changed(name))) }),
      apply: ({ body }) => {
        bodies.push(body)
        if (body?.['dry_run'] !== true && refusals.length > 0) return refusals.shift()!
        const applied = body?.['force'] === true ? NAMES : NAMES.slice(1)
        return appliedAs({ applied, checkpoint_id: 'f'.repeat(64) })
      },
      restore: ({ body }) => {
        bodies.push(body)
        if (refusals.length > 0) return refusals.shift()!
        return { json: { restored: '', checkpoint_id: '', paths: ['a'], left_out: [] } }
      },
    })
    pending(fake)
    fake.checkpoint('7', 'apply')
    const page = await openRun(t, context, fake, '/changes')
    const dialog = page.getByRole('dialog')
    await page.getByText('4 of 4 files').waitFor()
    refusals.push(
      problem(409, 'run_live', 'a fork works in this copy'),
      problem(422, 'workspace_too_large', 'the folder is too large'),
      problem(409, 'apply_conflict', 'changed by both', NAMES),
    )
    await page.locator('#apply-changes').focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('3 files in /home/ann/app would change.').waitFor()
    await press(page, 'Apply')
    await dialog.getByText('a fork works in this copy').waitFor()
    await assertAccessible(page, 'run_live')
    // The user looks again: nothing is applied that was not seen.
    await page.keyboard.press('Escape')
    await page.locator('#apply-changes').focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('3 files in').waitFor()
    await press(page, 'Apply')
    await dialog.getByText('the folder is too large').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('#apply-changes').focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('3 files in').waitFor()
    await press(page, 'Apply')
    await dialog.getByText('bidi\\u202e\\u0007.js').first().waitFor()
    await dialog.getByText('latin\\udce9.txt').first().waitFor()
    await assertAccessible(page, 'apply_conflict')
    await press(page, "Overwrite the others' version", 'Space')
    await press(page, 'Apply')
    await page.getByText('Applied 4 files.').waitFor()
    assert.deepEqual(bodies.at(-1), { force: true })
    // A checkpoint of the folder, not of the copy: the dialog says so.
    await page.getByRole('tab', { name: 'Timeline' }).click()
    refusals.push(
      problem(503, 'busy', 'try again'),
      problem(409, 'workspace_changed', 'changed since', NAMES),
    )
    const entry = page.locator('article.checkpoint', { hasText: 'before the apply' })
    await entry.getByRole('button', { name: 'Restore' }).focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('This is a checkpoint of /home/ann/app, and not of the').waitFor()
    await assertAccessible(page, 'a checkpoint of the folder')
    await press(page, 'Restore')
    await dialog.getByText('try again').waitFor()
    await press(page, 'Restore')
    await dialog.getByText('Others changed these files').waitFor()
    await assertAccessible(page, 'workspace_changed')
    await press(page, 'Overwrite and restore')
    await page.getByText('Restored 1 file').waitFor()
    assert.deepEqual(bodies.at(-1), { checkpoint_id: '7'.repeat(64), force: true })
    assert.equal(await page.locator('main img').count(), 0)
  })

  test(`5 000 files and a diff of 5 MB stay bounded at ${width} px`, async (t) => {
    const context = await openBrowser(t, options)
    const line = `+${'x'.repeat(98)}\n`
    const many = Array.from({ length: 5_000 }, (_, i) => changed(`src/${i}.js`, { diff: null }))
    const huge = changed('huge.js', { diff: `@@ -1 +1 @@\n${line.repeat(50_000)}` })
    const wide = changed('wide.js', { diff: `@@ -1 +1 @@\n+${'y'.repeat(2_000_000)}\n` })
    const fake = await twoIterations(t, {
      changes: () => ({ json: changesOf(huge, wide, ...many, ...NAMES.map((n) => changed(n))) }),
      files: () => ({ json: listOf('', ...many.map(({ path }) => ({
        path, type: 'file' as const, size: 1, mode: '100644',
      }))) }),
    })
    const page = await openRun(t, context, fake, '/changes')
    await page.getByText('5,006 files changed').waitFor()
    await page.locator('.change-row summary').first().click()
    await page.getByRole('button', { name: 'Show 2,000 more lines' }).waitFor()
    assert.ok((await elements(page)) < 3_000, `${await elements(page)} elements`)
    const shown = await page.locator('.change-row').nth(1).textContent()
    assert.ok(shown!.length < 20_000, `${shown!.length} characters of one line`)
    assert.match(shown!, /… 1,998,001 more characters/)
    await assertAccessible(page, 'huge')
    // Typing is quick: tasks of the page, not of the machine, are counted.
    const find = page.getByLabel('Find a changed file')
    await find.fill('4999')
    await page.getByText('1 file changed').waitFor()
    await find.fill('javascript:')
    await page.getByText('1 file changed').waitFor()
    for (const link of await page.locator('main a').all())
      assert.doesNotMatch((await link.getAttribute('href'))!, /^\s*javascript:/i)
    await page.getByRole('tab', { name: 'Files' }).click()
    await page.getByText('1–200 of 5,000').waitFor()
    assert.ok((await elements(page)) < 3_000, `${await elements(page)} elements`)
    await assertAccessible(page, 'a huge folder')
  })
}
