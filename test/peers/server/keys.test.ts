/** Keys of the dashboard: when they act, what the dialog lists, and that they can be switched off. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { assertAccessible } from './accessible.js'
import { openBrowser } from './browser.js'
import { openFake, openRun } from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

interface Keys {
  bindKeys(scope: string, bindings: readonly object[]): () => void
}
/** What the page of this test keeps beside the page's own things. */
interface Kept {
  pressed: string[]
  unbind: Record<string, () => void>
}

/** Binds keys that note their name; `unbind[name]` of the page frees them. */
async function bind(page: Page, scope: string, keys: Record<string, string>): Promise<void> {
  await page.evaluate(
    async ([name, labels]) => {
      const url = new URL('runwright/keys.js', document.baseURI).href
      const { bindKeys } = (await import(url)) as Keys
      const kept = globalThis as unknown as Partial<Kept>
      const pressed = (kept.pressed ??= [])
      // A function with a name would need a helper of the compiler, which the page does not have.
      const bindings = Object.entries(labels).map(([key, label]) =>
        Object.fromEntries([
          ['key', key], ['label', label], ['run', () => void pressed.push(`${name} ${key}`)],
        ]) as object,
      )
      ;(kept.unbind ??= {})[name] = bindKeys(name, bindings)
    },
    [scope, keys] as const,
  )
}

const pressed = (page: Page): Promise<string[]> =>
  page.evaluate(() => (globalThis as unknown as Kept).pressed.splice(0))

test('keys act unless somebody types, a dialog is open, or they are held', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake)
  await bind(page, 'One', { a: 'Take it', x: 'Leave it' })
  const cases: readonly (readonly [name: string, act: () => Promise<unknown>, acts: boolean])[] = [
    ['alone', async () => page.keyboard.press('a'), true],
    ['with Control', async () => page.keyboard.press('Control+a'), false],
    ['with Alt', async () => page.keyboard.press('Alt+a'), false],
    ['with Meta', async () => page.keyboard.press('Meta+a'), false],
    ['with Shift', async () => page.keyboard.press('Shift+a'), false],
    ['as a capital', async () => page.keyboard.press('A'), false],
    [
      'held down',
      async () => {
        for (let i = 0; i < 5; i++) await page.keyboard.down('a')
        await page.keyboard.up('a')
      },
      true,
    ],
    ['in a search field', async () => page.getByLabel('Find in this run').press('a'), false],
    ['in a text', async () => page.getByLabel('Message to the run').press('a'), false],
    [
      'in a choice',
      async () => page.getByLabel('Show runs with status').press('a'),
      false,
    ],
    ['on a button', async () => page.getByRole('button', { name: 'Abort' }).press('a'), true],
    [
      'in a dialog',
      async () => {
        await page.getByRole('button', { name: 'Keys' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Close' }).press('a')
        await page.keyboard.press('Escape')
      },
      false,
    ],
  ]
  for (const [name, act, acts] of cases) {
    await act()
    assert.deepEqual(await pressed(page), acts ? ['One a'] : [], name)
  }
})

test('the dialog lists what is bound now, the later of two bindings of a key', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake)
  await bind(page, 'Below', { a: 'Below a', x: 'Below x' })
  await bind(page, 'Above', { a: 'Above <b>a</b>', PageDown: 'Next' })
  await page.locator('body').press('a')
  assert.deepEqual(await pressed(page), ['Above a'])
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog', { name: 'Keys' })
  const listed = async (): Promise<(string | null)[]> =>
    await dialog.locator('h3, dl > div').evaluateAll((all) => all.map((one) => one.textContent))
  assert.deepEqual(await listed(), [
    'Above', 'aAbove <b>a</b>', 'Page DownNext', 'Below', 'xBelow x', 'Everywhere', '?Show the keys',
  ])
  await assertAccessible(page, 'the dialog of keys')
  await page.keyboard.press('Escape')
  await page.evaluate(() => (globalThis as unknown as Kept).unbind['Above']!())
  await page.keyboard.press('a')
  assert.deepEqual(await pressed(page), ['Below a'])
})

test('keys that are switched off stay off, and the button still lists them', async (t) => {
  const fake = await openFake(t, {})
  const page = await openRun(t, browser, fake)
  await bind(page, 'One', { a: 'Take it' })
  const dialog = page.getByRole('dialog', { name: 'Keys' })
  const open = async (): Promise<void> => page.getByRole('button', { name: 'Keys' }).click()
  await open()
  await dialog.getByLabel('Use these keys').uncheck()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await page.locator('body').press('a')
  await page.keyboard.press('?')
  assert.equal(await dialog.count(), 0)
  assert.deepEqual(await pressed(page), [])
  await page.reload()
  await open()
  assert.equal(await dialog.getByLabel('Use these keys').isChecked(), false)
  await dialog.getByLabel('Use these keys').check()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await page.keyboard.press('?')
  await dialog.waitFor()
})
