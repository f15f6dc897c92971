/** The gate of the dashboard over a real service: what it shows, how it is answered, by keyboard. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import type { Said } from '../../helpers/engine.js'
import { assertAccessible } from './accessible.js'
import { openBrowser, resize } from './browser.js'
import { A, answered, eventsOf, MIXED, openWorld, ready, type World } from './gate-world.js'

/** Folder for screenshots; none are taken unless the variable is set. */
const SHOTS = process.env['RUNWRIGHT_SCREENSHOTS']
const PARTS = 'section.gate, section.kept-text, dialog'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS === undefined) return
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: join(SHOTS, `${name}.png`) })
}

const bash = (command: string): Said => ({ calls: [{ tool: 'bash', args: { command } }] })
const gateOf = (page: Page) => page.locator('section.gate')
const callOf = (page: Page, n: number) => page.locator('.gated-call').nth(n - 1)

/** The gate that follows, once it takes answers. */
async function nextGate(page: Page, text: string): Promise<void> {
  const found = gateOf(page).locator('.gated').getByText(text).filter({ visible: true })
  await found.first().waitFor()
  await ready(page)
}

/** What the calls of the run came to, in their order. */
async function results({ engine, runId }: World): Promise<[code: number, output: string][]> {
  const events = await eventsOf(engine, runId)
  return events.flatMap((event) =>
    event.kind === 'tool_result' ? [[event.payload.exit_code, event.payload.output]] : [],
  )
}

/**
 * The gate of {@link MIXED}, once it takes answers: a moment after it shows the last of the files
 * that it has read.
 */
async function readyWithFiles(page: Page): Promise<void> {
  for (const n of [2, 3]) await callOf(page, n).locator('.diff').waitFor()
  await ready(page)
}

/** Resolves once something holds that events of the run change. */
async function until({ engine }: World, holds: () => Promise<boolean>): Promise<void> {
  let wake: () => void = () => undefined
  const stop = engine.observe(() => wake())
  try {
    for (;;) {
      const changed = new Promise<void>((resolve) => (wake = resolve))
      if (await holds()) return
      await changed
    }
  } finally {
    stop()
  }
}

test('a gate shows files as diffs, commands as commands, and other calls as a table', async (t) => {
  const { page } = await openWorld(t, browser, { turns: [MIXED] })
  const gate = gateOf(page)
  await gate.getByRole('heading', { name: 'May these tools run?' }).waitFor()
  await gate.getByText('The model wants to make 5 calls: 2 write files, 1 edits a file, 1 runs a')
    .waitFor()
  await gate.getByText('This run asks before calls that may change something.').waitFor()
  await gate.getByText('The parser drops the last line.').waitFor()
  const lines = async (n: number): Promise<string[]> => {
    await callOf(page, n).locator('.line').first().waitFor()
    return await callOf(page, n).locator('.line').allTextContents()
  }
  assert.deepEqual((await lines(1)).slice(0, 6), [
    '@@ -1,6 +1,6 @@\n', ' line 1\n', ' line 2\n', '-line 3\n', '+line three\n', ' line 4\n',
  ])
  assert.deepEqual(await lines(2), ['@@ -0,0 +1,1 @@\n', '+export const made = 1\n'])
  await callOf(page, 2).getByText('new file').waitFor()
  // It edits what the first call has written.
  assert.deepEqual((await lines(3)).filter((line) => /^[-+]/.test(line)), [
    '-line three\n', '+line 3, mended\n',
  ])
  const command = callOf(page, 4).locator('.command')
  assert.match(String(await command.textContent()), /^cd src\nfor file in \*\.js; do\n {2}node/)
  await callOf(page, 4).getByText('30.0 s').waitFor()
  await callOf(page, 4).getByText('/shop').waitFor()
  const rows = callOf(page, 5).locator('.arguments > div')
  await rows.first().waitFor()
  assert.deepEqual(await rows.allTextContents(), [
    'targetstaging', 'replicas2', 'notefirst line\nsecond line',
  ])
  await callOf(page, 4).getByText('As JSON').click()
  await callOf(page, 4).getByText('"timeout_ms": 30000').waitFor()
  // Without the first call, the edit does not find its text.
  await callOf(page, 1).getByLabel('Run call 1').uncheck()
  await callOf(page, 3).getByText('The file does not contain the text to replace').waitFor()
  await gate.getByRole('button', { name: 'Approve 4 of 5 calls' }).waitFor()
  await callOf(page, 1).getByLabel('Run call 1').check()
  await callOf(page, 3).getByText('+1', { exact: true }).waitFor()
})

test('a gate shows patches that are to be tried, and the command that tells what they do', async (t) => {
  const edit = { path: 'src/a.js', old_text: 'line 3\n', new_text: 'line three\n' }
  const patches = [{ edits: [edit], note: 'As a word.' }]
  const args = { patches, command: 'node --test', watch: true }
  const { page } = await openWorld(t, browser, {
    turns: [{ calls: [{ tool: 'try_patches', args }] }],
  })
  await gateOf(page).getByText('The model wants to make a call that tries patches.').waitFor()
  const asked = callOf(page, 1)
  assert.equal(await asked.locator('.call-title').innerText(), 'Tries 1 patch')
  assert.equal(await asked.locator('pre.command').innerText(), 'node --test')
  await asked.getByText('three times what the run without a patch takes, and 2 s').waitFor()
  await asked.locator('.change summary').click()
  assert.equal(await asked.locator('.diff').textContent(), '-line 3\n+line three\n')
  await asked.getByText('As a word.').waitFor()
  assert.deepEqual(await asked.locator('.arguments > div').allTextContents(), ['watchtrue'])
  await assertAccessible(page, 'patches at a gate')
  await shoot(page, 'patches-at-a-gate')
})

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the buttons of a gate are in view at every size, ${colorScheme}`, async (t) => {
    const context = await openBrowser(t, { colorScheme, reducedMotion: 'reduce' })
    const { page } = await openWorld(t, context, {
      turns: [MIXED], engine: { gateTimeoutMs: 300_000 },
    })
    await ready(page)
    await callOf(page, 3).locator('.diff').waitFor()
    for (const [width, height] of [
      [1920, 1080], [1280, 800], [1280, 500], [768, 1024], [360, 640],
    ] as const) {
      await resize(page, { width, height })
      for (const part of [0, 0.5, 1]) {
        await page.evaluate((to) => {
          scrollTo(0, document.documentElement.scrollHeight * to)
          const body = document.querySelector('.gate-body')!
          body.scrollTo(0, body.scrollHeight * to)
        }, part)
        for (const name of ['Approve calls', 'Reject all calls', 'Abort run']) {
          const box = (await gateOf(page).getByRole('button', { name }).boundingBox())!
          const [right, bottom] = [box.x + box.width, box.y + box.height]
          const where = `${name} at ${width}x${height}, ${part}: ${JSON.stringify(box)}`
          assert.ok(box.x >= 0 && box.y >= 56 && right <= width && bottom <= height, where)
        }
        if (part === 0) await shoot(page, `gate-${width}x${height}-${colorScheme}`)
      }
      await assertAccessible(page, `${width} ${colorScheme}`, PARTS)
    }
    await resize(page, { width: 1280, height: 800 })
    await gateOf(page).getByRole('button', { name: 'Fold' }).click()
    await gateOf(page).locator('.gate-body').waitFor({ state: 'hidden' })
    await gateOf(page).getByRole('button', { name: 'Approve calls' }).waitFor()
    await assertAccessible(page, 'folded', PARTS)
  })
}

for (const { width, colorScheme } of [
  { width: 1280, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
] as const) {
  test(`calls are approved, rejected and edited one by one at ${width} px`, async (t) => {
    const context = await openBrowser(t, { colorScheme, viewport: { width, height: 800 } })
    const world = await openWorld(t, context, { turns: [MIXED, { stop: 'refusal' }] })
    const { page, file } = world
    await readyWithFiles(page)
    await callOf(page, 2).getByLabel('Run call 2').uncheck()
    await callOf(page, 2).getByLabel('Why not').fill('no new files')
    // The key edits the call that has the focus.
    await callOf(page, 4).locator('summary').first().focus()
    await page.keyboard.press('e')
    const command = callOf(page, 4).getByLabel('command')
    await command.fill('echo "edited" > made\ncat made')
    await assertAccessible(page, 'an editor', PARTS)
    await shoot(page, `gate-edit-${width}`)
    await callOf(page, 4).getByRole('button', { name: 'Show what it does' }).click()
    await callOf(page, 4).getByText('edited by you').waitFor()
    assert.equal(
      await callOf(page, 4).locator('.command').textContent(), 'echo "edited" > made\ncat made',
    )
    // An editor that is still open counts as well.
    await callOf(page, 5).getByRole('button', { name: 'Edit call 5' }).click()
    await callOf(page, 5).getByLabel('replicas, as JSON').fill('three')
    await gateOf(page).getByRole('button', { name: 'Approve 4 of 5 calls' }).click()
    await callOf(page, 5).getByText('replicas: no JSON').waitFor()
    await assertAccessible(page, 'an argument that is no JSON', PARTS)
    assert.deepEqual(await world.answers(), [])
    await callOf(page, 5).getByLabel('replicas, as JSON').fill('3')
    // What the service refuses is said of the call, and nothing that was typed is lost.
    await callOf(page, 3).getByRole('button', { name: 'Edit call 3' }).click()
    await callOf(page, 3).getByRole('button', { name: 'Edit as JSON' }).click()
    await callOf(page, 3).getByLabel('Arguments, as JSON').fill('{"path": 7}')
    await gateOf(page).getByRole('button', { name: 'Approve 4 of 5 calls' }).click()
    await gateOf(page).getByText('Call 3: edit_file was not run').waitFor()
    await callOf(page, 3).getByRole('button', { name: 'Undo my changes' }).click()
    await callOf(page, 1).locator('summary').first().focus()
    await page.keyboard.press('a')
    await until(world, async () => (await world.answers()).length > 0)
    const [answer] = await world.answers()
    assert.deepEqual([answer!.decision, Object.values(answer!.edits!)], [
      'approve',
      [
        { decision: 'reject', feedback: 'no new files' },
        { args: { command: 'echo "edited" > made\ncat made', timeout_ms: 30_000 } },
        { args: { target: 'staging', replicas: 3, note: 'first line\nsecond line' } },
      ],
    ])
    await gateOf(page).waitFor({ state: 'hidden' })
    await until(world, async () => (await results(world)).length === 5)
    assert.deepEqual((await results(world)).map(([code]) => code), [0, 126, 0, 0, 0])
    assert.match(readFileSync(file('src/a.js'), 'utf8'), /line 3, mended/)
    assert.equal(readFileSync(file('made'), 'utf8'), 'edited\n')
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'run-title')
    await answered(page, 'approve')
  })
}

test('a key that was meant for the gate before does not answer the next one', async (t) => {
  const world = await openWorld(t, browser, { turns: [bash('one'), bash('two'), bash('three')] })
  const { page } = world
  // As somebody who presses the key at the very moment in which something appears.
  await page.evaluate(() => {
    const gate = document.querySelector('section.gate')!
    new MutationObserver((records) => {
      const added = records.filter(({ target }) => target === gate)
      if (!added.some(({ addedNodes }) => addedNodes.length > 0)) return
      const event = { key: 'a', bubbles: true, cancelable: true }
      document.body.dispatchEvent(new KeyboardEvent('keydown', event))
      document.querySelector<HTMLButtonElement>('.gate-bar .primary')?.click()
    }).observe(gate, { childList: true, subtree: true })
  })
  await nextGate(page, 'one')
  await page.keyboard.press('a')
  await nextGate(page, 'two')
  // The observer has pressed the key: nothing was answered, and the panel says so.
  await page.getByText('Nothing was answered: press the key again').waitFor()
  assert.equal((await world.answers()).length, 1)
  // A key that is held down is one press.
  await page.keyboard.down('a')
  await nextGate(page, 'three')
  await page.keyboard.down('a')
  await page.keyboard.down('a')
  await page.keyboard.up('a')
  assert.equal((await world.answers()).length, 2)
  await page.keyboard.press('r')
  await until(world, async () => (await world.answers()).length === 3)
  assert.deepEqual((await world.answers()).map(({ decision }) => decision), [
    'approve', 'approve', 'reject',
  ])
})

test('keys do nothing while somebody types, with other keys, and behind a dialog', async (t) => {
  const world = await openWorld(t, browser, { turns: [bash('one')] })
  const { page } = world
  await nextGate(page, 'one')
  const feedback = gateOf(page).getByLabel('Feedback for the model')
  await feedback.pressSequentially('a rear view')
  assert.equal(await feedback.inputValue(), 'a rear view')
  await page.getByLabel('Find in this run').press('a')
  await page.locator('#run-title').focus()
  for (const keys of ['Control+a', 'Alt+r', 'Meta+a', 'Shift+A']) await page.keyboard.press(keys)
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog', { name: 'Keys' })
  await dialog.getByText('Approve the calls').waitFor()
  await dialog.getByText('Reject all calls').waitFor()
  await assertAccessible(page, 'the keys of a gate', PARTS)
  await shoot(page, 'gate-keys')
  for (const key of ['a', 'r', 'e']) await page.keyboard.press(key)
  await page.keyboard.press('Escape')
  assert.deepEqual(await world.answers(), [])
  await page.keyboard.press('r')
  await answered(page, 'reject')
  const [answer] = await world.answers()
  assert.deepEqual([answer!.decision, answer!.feedback], ['reject', 'a rear view'])
})

test('a key answers nothing that is out of view: it leads there first', async (t) => {
  const context = await openBrowser(t, { viewport: { width: 360, height: 640 } })
  const world = await openWorld(t, context, { turns: [MIXED] })
  const { page } = world
  await readyWithFiles(page)
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
  await page.keyboard.press('a')
  await page.getByText('Nothing was answered').waitFor()
  const { top } = await gateOf(page).evaluate((gate) => gate.getBoundingClientRect().toJSON()) as
    DOMRect
  assert.ok(top >= 0 && top < 640, `${top}`)
  assert.deepEqual(await world.answers(), [])
  await ready(page)
  await page.keyboard.press('a')
  await answered(page, 'approve')
})

test('the net changes since the last gate are shown, and not those before it', async (t) => {
  const write = (path: string): Said => ({
    calls: [{ tool: 'write_file', args: { path, content: `${path}\n` } }],
  })
  const turns = [write('first'), {}, write('second'), {}, {}]
  const { page } = await openWorld(t, browser, { turns, request: { hitl_enabled: true } })
  const gate = gateOf(page)
  await gate.getByRole('heading', { name: 'Iteration 1 is done. Continue?' }).waitFor()
  await gate.getByText('The goal is not met yet. If you approve, iteration 2 of 20').waitFor()
  await gate.getByText('1 file · +1 −0').waitFor()
  await gate.locator('.net-changes .path', { hasText: 'first' }).waitFor()
  await assertAccessible(page, 'an iteration', PARTS)
  await ready(page)
  await page.keyboard.press('a')
  await gate.getByRole('heading', { name: 'Iteration 2 is done. Continue?' }).waitFor()
  await gate.locator('.net-changes .path', { hasText: 'second' }).waitFor()
  assert.equal(await gate.locator('.net-changes .path', { hasText: 'first' }).count(), 0)
  await shoot(page, 'gate-iteration')
})

test('what cannot be compared is said: new, binary, large, outside, and a folder', async (t) => {
  const content = 'x\n'
  const write = (path: string) => ({ tool: 'write_file', args: { path, content } })
  const turn: Said = {
    calls: [
      ...['logo.png', 'large.txt', '../out.txt', 'src', 'crlf.txt'].map(write),
      { tool: 'write_file', args: { path: 'src/a.js', content: A } },
      { tool: 'edit_file', args: { path: 'no.txt', old_text: 'a', new_text: 'b' } },
    ],
  }
  const world = await openWorld(t, browser, { turns: [bash('true'), turn] })
  const { page, file } = world
  await nextGate(page, 'true')
  writeFileSync(file('large.txt'), 'y'.repeat(1_100_000))
  await page.keyboard.press('a')
  await nextGate(page, 'logo.png')
  for (const [i, words] of [
    'The present file is not text.',
    'The present file has more than 1.0 MiB.',
    'This path leads out of the folder.',
    'A folder is there, not a file.',
  ].entries()) await callOf(page, i + 1).getByText(words).waitFor()
  await callOf(page, 5).getByText('-one\\u000d').waitFor()
  for (const n of [6, 7]) await callOf(page, n).locator('summary').first().click()
  await callOf(page, 6).getByText('The file has this content already.').waitFor()
  await callOf(page, 7).getByText('There is no such file: the edit will fail.').waitFor()
  await assertAccessible(page, 'what cannot be compared', PARTS)
  // The present file is the one on disk, not the one of the checkpoint.
  rmSync(file('logo.png'))
})
