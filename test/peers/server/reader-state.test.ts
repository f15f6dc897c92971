/** What a reader has done in the page of a run stays while the run goes on, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { Random } from '../../helpers/random.js'
import { openBrowser } from './browser.js'
import {
  changed, changesOf, listOf, openRun, problem, twoIterations, type FakeService,
} from './fake-workspace.js'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const active = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.textContent ?? '')

/** Selects the text of an element, as a double click would. */
const select = (page: Page, selector: string): Promise<void> =>
  page.evaluate((found) => {
    getSelection()!.selectAllChildren(document.querySelector(found)!)
  }, selector)

const selected = (page: Page): Promise<string> => page.evaluate(() => String(getSelection()))

/** Reports a check, and waits until the page shows it: what was reported before is shown too. */
async function settle(page: Page, fake: FakeService, tokens: number): Promise<void> {
  const { final_state } = fake.engine.runs.get(fake.runId)!.details
  fake.set({ final_state: { ...final_state, total_tokens: tokens } })
  fake.engine.append(fake.runId, 'goal_check', {
    achieved: false, reason: 'not yet', cached: false, duration_ms: 1,
    counts: { total: tokens, passed: tokens, failed: 0, skipped: 0 },
  } as never)
  await page.locator('.meter-value', { hasText: new RegExp(`^${tokens}$`) }).waitFor({
    state: 'attached',
  })
  // The tokens come with the details, which may be faster than the events.
  const counts = { hasText: `${tokens} of ${tokens} tests pass` }
  await page.locator('.meters .counts', counts).waitFor({ state: 'attached' })
}

function toolResult(fake: FakeService, id: string, path: string): void {
  const { engine, runId } = fake
  engine.append(runId, 'tool_call', { tool: 'write_file', args: { path }, call_id: id } as never)
  const change = { path, change: 'modified', added_lines: 1, removed_lines: 0, diff: `+${path}\n` }
  engine.append(runId, 'tool_result', {
    tool: 'write_file', output: `wrote ${path}`, exit_code: 0, call_id: id, duration_ms: 1,
    changes: [change],
  } as never)
}

test('notes that the reader unfolded stay unfolded, also when their count changes', async (t) => {
  let count = 2
  const fake = await twoIterations(t, {
    changes: () => ({
      json: {
        ...changesOf(...Array.from({ length: count }, (_, i) => changed(`${i}.js`))),
        left_out: [
          { reason: 'size', count: 1, paths: ['big.bin'] },
          { reason: 'secret', count, paths: Array.from({ length: 60 }, (_, i) => `.env.${i}`) },
        ],
      },
    }),
  })
  const page = await openRun(t, browser, fake, '/changes')
  const note = page.getByText('(secret by name)')
  await note.focus()
  await page.keyboard.press('Enter')
  await page.getByText('.env.50').waitFor()
  const list = page.locator('.notes details[open] .paths')
  await list.evaluate((element) => element.scrollTo({ top: 300 }))
  for (const next of [2, 3]) {
    count = next
    const read = page.waitForResponse(/\/changes/)
    fake.checkpoint(String(next + 3), 'iteration')
    await (await read).finished()
    await page.getByText(`Not compared: ${next} paths (secret by name)`).waitFor()
    await settle(page, fake, 100 + next)
    assert.equal(await page.locator('.notes details[open]').count(), 1)
    assert.equal(await list.evaluate(({ scrollTop }) => scrollTop), 300)
    assert.match(await active(page), /secret by name/)
  }
})

test('facts keep selection and focus, and a list of changed files its focus', async (t) => {
  const fake = await twoIterations(t)
  fake.set({ parent_run_id: '01930000-0000-7000-8000-0000000000aa' })
  toolResult(fake, 'c1', 'a.js')
  const page = await openRun(t, browser, fake)
  await page.getByRole('link', { name: 'an earlier run' }).focus()
  await settle(page, fake, 101)
  assert.equal(await active(page), 'an earlier run')
  await page.getByRole('button', { name: 'a.js' }).first().focus()
  toolResult(fake, 'c2', 'b.js')
  await page.getByText('Changed files (2)').waitFor()
  assert.match(await active(page), /^a\.js/)
  await select(page, '.facts dd')
  const before = await selected(page)
  assert.notEqual(before, '')
  await settle(page, fake, 102)
  assert.equal(await selected(page), before)
})

test('a file and a folder that are read stay as they are with every checkpoint', async (t) => {
  let files = 250
  const text = Array.from({ length: 400 }, (_, i) => `line ${i}`).join('\n')
  const fake = await twoIterations(t, {
    files: ({ path }) => {
      if (path !== 'files') return { bytes: text }
      const entry = (_: unknown, i: number) => ({
        path: `f${String(i).padStart(4, '0')}`, type: 'file' as const, size: 1, mode: '100644',
      })
      return { json: listOf('', ...Array.from({ length: files }, entry)) }
    },
  })
  const page = await openRun(t, browser, fake, '/files')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('link', { name: 'f0210' }).focus()
  files = 251
  fake.checkpoint('4', 'iteration')
  await page.getByText('201–251 of 251').waitFor()
  assert.equal(await active(page), 'f0210')
  // While another tab is shown.
  await page.getByRole('tab', { name: 'Changes' }).click()
  fake.checkpoint('5', 'iteration')
  await settle(page, fake, 101)
  const read = page.waitForResponse(/\/files(?:\?|$)/)
  await page.getByRole('tab', { name: 'Files' }).click()
  await (await read).finished()
  await page.getByText('201–251 of 251').waitFor()
  await page.getByRole('link', { name: 'f0210' }).click()
  await page.getByLabel('Content of the file').waitFor()
  await select(page, 'pre.whole')
  await page.evaluate(() => scrollTo(0, 2_000))
  const asked = () => fake.requests.filter(({ path }) => path === 'files/f0210').length
  const reads = asked()
  const again = page.waitForResponse(/files\/f0210/)
  fake.checkpoint('6', 'iteration')
  await (await again).finished()
  await settle(page, fake, 102)
  assert.equal(asked(), reads + 1)
  assert.match(await selected(page), /line 399$/)
  assert.equal(await page.evaluate(() => scrollY), 2_000)
})

test('a diff keeps its lines and scrolling, and a failed refresh keeps the list', async (t) => {
  let lines = 3_000
  const diff = () =>
    `@@ -1 +1,${lines} @@\n${Array.from({ length: lines }, (_, i) => `+line ${i}\n`).join('')}`
  const answer = () => ({
    json: changesOf(changed('a.js', { diff: diff(), additions: lines }), changed('b.js')),
  })
  const fake = await twoIterations(t, { changes: answer })
  const page = await openRun(t, browser, fake, '/changes')
  const row = page.locator('.change-row').first()
  await row.locator('summary').click()
  await row.getByRole('button', { name: 'Show 2,000 more lines' }).click()
  const box = row.locator('.diff')
  await box.evaluate((element) => element.scrollTo({ top: 20_000 }))
  const top = await box.evaluate(({ scrollTop }) => scrollTop)
  lines = 3_001
  fake.checkpoint('4', 'iteration')
  await page.getByText('+3,002 ').waitFor()
  assert.equal(await row.locator('.line').count(), 2_200)
  assert.equal(await box.evaluate(({ scrollTop }) => scrollTop), top)
  fake.routes['changes'] = () => problem(409, 'workspace_changed', 'the folder is busy')
  fake.checkpoint('5', 'iteration')
  await page.getByText('the folder is busy').waitFor()
  assert.equal(await row.locator('.line').count(), 2_200)
  fake.routes['changes'] = answer
  fake.checkpoint('6', 'iteration')
  await page.getByText('2 files changed').waitFor()
  assert.equal(await box.evaluate(({ scrollTop }) => scrollTop), top)
  // What is opened on one page, or found, is open when it is seen again.
  await page.getByLabel('Find a changed file').fill('b.js')
  await page.getByText('1 file changed').waitFor()
  await page.getByLabel('Find a changed file').fill('')
  await page.getByText('2 files changed').waitFor()
  assert.equal(await row.locator('.line').count(), 2_200)
})

test('an iteration is not folded under the eyes of its reader', async (t) => {
  const fake = await twoIterations(t)
  const { engine, runId } = fake
  const iterate = (k: number): void => {
    engine.iteration = k
    engine.append(runId, 'iteration_complete', { iteration: k, tokens: 1 })
    engine.append(runId, 'log', { level: 'info', message: `in iteration ${k}` })
  }
  iterate(3)
  const page = await openRun(t, browser, fake)
  const fold = (k: number) => page.getByRole('button', { name: `Iteration ${k}`, exact: true })
  const isOpen = async (k: number) => (await fold(k).getAttribute('aria-expanded')) === 'true'
  // Nobody is there: it is folded.
  iterate(4)
  await page.getByText('in iteration 4').waitFor()
  assert.equal(await isOpen(3), false)
  // Its reader has clicked into it, and writes a message.
  await page.getByText('in iteration 4').click()
  await page.getByLabel('Message to the run').focus()
  iterate(5)
  await page.getByText('in iteration 5').waitFor()
  assert.equal(await isOpen(4), true)
  // Its reader has scrolled to it: what is far from the window has no elements.
  engine.log(runId, 60)
  await settle(page, fake, 101)
  await page.evaluate(() => scrollTo(0, 0))
  await fold(5).evaluate((element) => element.scrollIntoView({ block: 'center' }))
  iterate(6)
  await settle(page, fake, 102)
  assert.equal(await isOpen(5), true)
})

const SEEDS = Array.from({ length: Number(process.env['RUNWRIGHT_READERS'] ?? 2) }, (_, i) => i + 1)
const ROUNDS = 12

for (const seed of SEEDS) {
  test(`random events leave what a reader has done as it was (seed ${seed})`, async (t) => {
    const random = new Random(seed)
    let added = 0
    const diffs = ['a.js', 'b.js', 'c.js'].map((path) => ({ path, lines: random.integer(5, 60) }))
    const fake = await twoIterations(t, {
      changes: () => ({
        json: {
          ...changesOf(
            ...diffs.map(({ path, lines }) =>
              changed(path, {
                additions: lines,
                diff: `@@ -1 +1 @@\n${'+text of a line\n'.repeat(lines)}`,
              }),
            ),
            ...Array.from({ length: added }, (_, i) => changed(`r${i}.txt`, { diff: null })),
          ),
          left_out: [{ reason: 'secret', count: 1 + added, paths: ['.env', `${added}.pem`] }],
        },
      }),
      files: () => ({
        json: listOf('', ...Array.from({ length: 5 + added }, (_, i) => ({
          path: `f${i}`, type: 'file' as const, size: 1, mode: '100644',
        }))),
      }),
    })
    const { engine, runId } = fake
    // Changes can be ticked, and events still come: as when somebody else restores.
    fake.set({ workspace: 'isolated', status: 'achieved', changes: 'pending' })
    toolResult(fake, 'first', 'a.js')
    const page = await openRun(t, browser, fake)
    // What the compiler adds to functions with a name.
    await page.evaluate('globalThis.__name = (value) => value')
    const events: Record<string, (n: number) => void> = {
      checkpoint: (n) => {
        added += 1
        for (const each of diffs) if (random.chance(0.5)) each.lines += 1
        fake.checkpoint((n % 16).toString(16), 'iteration')
      },
      tool: (n) => toolResult(fake, `t${n}`, random.pick(['a.js', 'b.js', `new${n}.js`])),
      log: () => engine.log(runId, random.integer(1, 5)),
      iteration: () => {
        engine.iteration += 1
        engine.append(runId, 'iteration_complete', { iteration: engine.iteration, tokens: 1 })
      },
      message: (n) => {
        const message = { message_id: `m${n}`, text: 'hear', by: 'ann' }
        engine.append(runId, 'user_message', { ...message, deliver: 'next_turn' })
        const turn = { turn: 1, text: 'heard it', stop: 'end', heard: [`m${n}`] }
        engine.append(runId, 'model_turn', turn as never)
      },
      files: () => {
        const facts = { operation_id: 'o', operation: 'restore' as const }
        engine.append(runId, 'files_changed', { ...facts, paths: ['a.js'], skipped: [] })
      },
      details: (n) => fake.set({ iteration: n, max_iterations: 20 + n }),
    }
    for (let round = 1; round <= ROUNDS; round++) {
      const tab = random.pick(['Timeline', 'Changes', 'Files'])
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tabpanel', { name: tab }).waitFor()
      if (tab === 'Changes') {
        await page.getByText(`${3 + added} files changed`).waitFor()
        await page.getByLabel('Side by side').setChecked(random.chance(0.5))
        const box = page.locator('.change-row input').nth(random.integer(0, 2))
        await box.setChecked(random.chance(0.5))
      }
      if (tab === 'Files') await page.getByRole('link', { name: `f${4 + added}` }).waitFor()
      const typed = `message ${round}`
      await page.locator('#message').fill(typed)
      const panel = `#panel-${tab.toLowerCase()}`
      // While entries are drawn and cleared, the last of them may be gone before it is clicked.
      await page.evaluate(settled)
      const summaries = page.locator(`${panel} summary:visible`)
      const count = await summaries.count()
      if (count > 0) await summaries.nth(random.integer(0, count - 1)).click()
      await page.evaluate(settled)
      const last = random.pick(['focus', 'select'])
      const held = await page.evaluate(hold, { panel, last, at: random.next() })
      for (let i = random.integer(1, 4); i > 0; i--) {
        const name = random.pick(Object.keys(events))
        t.diagnostic(`${round}: ${tab}, ${last} ${held}: ${name}`)
        events[name]!(round * 10 + i)
      }
      await settle(page, fake, 100 + round)
      if (tab === 'Changes') await page.getByText(`${3 + added} files changed`).waitFor()
      if (tab === 'Files') await page.getByRole('link', { name: `f${4 + added}` }).waitFor()
      await page.waitForFunction(() => document.querySelector('main [aria-busy=true]') === null)
      await page.evaluate(settled)
      assert.deepEqual(await page.evaluate(lost), [], `round ${round} of seed ${seed}`)
      assert.equal(await page.locator('#message').inputValue(), typed)
    }
  })
}

/**
 * Resolves once what the page draws near the window is there, and what it clears is gone.
 * Observers are told in the order in which they were made: when a new one hears of a frame, the
 * page has heard of it.
 */
async function settled(): Promise<void> {
  const observed = (): Promise<void> =>
    new Promise((done) => {
      const observer = new IntersectionObserver(() => {
        observer.disconnect()
        done()
      })
      observer.observe(document.body)
    })
  for (let last = ''; ; ) {
    await observed()
    const drawn = document.querySelectorAll('.block > *').length
    const now = `${scrollY} ${drawn} ${document.documentElement.scrollHeight}`
    if (now === last) return
    last = now
  }
}

interface Held {
  open: HTMLDetailsElement[]
  boxes: [HTMLInputElement, boolean][]
  scrolled: [Element, number][]
  focused: Element | null
  text: string
  tab: string
}

/** Focuses or selects something, scrolls boxes, and remembers all that the reader has done. */
function hold({ panel, last, at }: { panel: string; last: string; at: number }): string {
  const all = <T extends Element>(selector: string): T[] => {
    const found = [...document.querySelectorAll<T>(`${panel} :is(${selector})`)]
    return found.filter((element) => element.checkVisibility() && isNear(element))
  }
  // What is far from the window has no elements in the timeline, and is restored with them.
  const isNear = (element: Element): boolean => {
    const { top, bottom } = element.getBoundingClientRect()
    return panel !== '#panel-timeline' || (bottom > -300 && top < innerHeight + 300)
  }
  const clicked = document.activeElement
  const parts = all<HTMLElement>(
    last === 'focus'
      ? 'a, button:enabled, summary, select, input:enabled, article'
      : // A click on the name of a changed file searches for it, which hides other entries.
        '.path:not(a, button *), dd, .args, .prose, .line',
  )
  const part = parts[Math.floor(at * parts.length)]
  getSelection()!.removeAllRanges()
  if (last === 'focus') part?.focus({ preventScroll: true })
  else if (part !== undefined) {
    part.click()
    getSelection()!.selectAllChildren(part)
  }
  const scrolled = all('.diff, .paths, .output').map((element): [Element, number] => {
    element.scrollTop = 40
    return [element, element.scrollTop]
  })
  const { scrollHeight, clientHeight } = document.documentElement
  const isFollowing = scrollY > 0 && scrollHeight - clientHeight - scrollY < innerHeight
  const lastHead = [...document.querySelectorAll('#panel-timeline .iteration')].at(-1)
  const isInLast = (element?: Element | null): boolean =>
    lastHead !== undefined && element instanceof Element &&
    (lastHead.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0
  const isInWindow = (element: Element): boolean => {
    const { top, bottom } = element.getBoundingClientRect()
    return top < innerHeight && bottom > 0
  }
  /** Of an entry in the timeline: does the page keep it as it is, whatever comes? */
  const stays = (element: Element): boolean => {
    const block = element.closest('.block')
    if (block === null) return true
    // A page that follows its end may leave it far behind, where it has no elements.
    if (isFollowing) return part !== undefined && block.contains(part)
    // An iteration whose reader is elsewhere is folded when another one begins.
    const isReaderThere = isInLast(clicked) || isInLast(part) ||
      (scrollY > 0 && isInWindow(element))
    return !isInLast(element) || isReaderThere
  }
  const boxes = [...document.querySelectorAll<HTMLInputElement>('.changes input, .tick input')]
  const held: Held = {
    open: all<HTMLDetailsElement>('details[open]').filter(stays),
    boxes: boxes.map((box) => [box, box.checked]),
    scrolled: scrolled.filter(([element]) => stays(element)),
    focused: last === 'focus' ? document.activeElement : null,
    text: String(getSelection()),
    tab: document.querySelector('[aria-selected=true]')!.id,
  }
  Reflect.set(window, 'held', held)
  return `${part?.outerHTML.slice(0, 80)}`
}

/** What of it is not as it was. */
function lost(): string[] {
  const { open, boxes, scrolled, focused, text, tab } = Reflect.get(window, 'held') as Held
  const name = (element: Element): string => element.outerHTML.slice(0, 200)
  const found: string[] = []
  for (const each of open)
    if (!each.isConnected || !each.open) found.push(`folded: ${name(each)}`)
  for (const [box, checked] of boxes)
    if (!box.indeterminate && box.isConnected && box.checked !== checked)
      found.push(`ticked or not: ${name(box)}`)
  for (const [box, top] of scrolled)
    if (!box.isConnected || box.scrollTop !== top) found.push(`scrolled: ${name(box)}`)
  if (focused !== null && document.activeElement !== focused) found.push(`focus: ${name(focused)}`)
  if (focused === null && String(getSelection()) !== text) found.push(`selection: ${text}`)
  if (document.querySelector('[aria-selected=true]')!.id !== tab) found.push('the tab')
  return found
}
