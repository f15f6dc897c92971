/** Tabs, changes, files, restore, fork, messages and apply in the dashboard, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { pairs } from '../../helpers/choice.js'
import { assertAccessible } from './accessible.js'
import { fillNumber, goBy, openBrowser, savedBy } from './browser.js'
import {
  appliedAs, changed, changesOf, listOf, openFake, openRun, problem, twoIterations, type Answer,
  type FakeService,
} from './fake-workspace.js'

const HOSTILE = `<img src=x onerror="document.title='owned'">`
const HIDDEN = 'a\u202e\u200b\u0007b'

let browser: BrowserContext
let closeBrowser = async (): Promise<void> => {}
before(async () => {
  browser = await openBrowser({ after: (hook) => (closeBrowser = hook) })
})
after(() => closeBrowser())

const open = (
  t: TestContext,
  fake: FakeService,
  tab = '',
  context: BrowserContext = browser,
): Promise<Page> => openRun(t, context, fake, tab)

const active = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.textContent ?? '')

test('the tabs are a tab list by keyboard, and the address names the tab', async (t) => {
  const fake = await twoIterations(t, { files: () => ({ json: listOf('') }) })
  const page = await open(t, fake)
  const tab = (name: string) => page.getByRole('tab', { name })
  await tab('Timeline').focus()
  for (const [key, name, address] of [
    ['ArrowRight', 'Waterfall', '/waterfall'],
    ['ArrowRight', 'Changes', '/changes'],
    ['ArrowRight', 'Files', '/files'],
    ['ArrowRight', 'Timeline', ''],
    ['ArrowLeft', 'Files', '/files'],
    ['Home', 'Timeline', ''],
    ['End', 'Files', '/files'],
    ['ArrowLeft', 'Changes', '/changes'],
  ] as const) {
    await page.keyboard.press(key)
    assert.equal(await active(page), name, key)
    assert.equal(await tab(name).getAttribute('aria-selected'), 'true')
    assert.equal(await page.locator('[role=tab][tabindex="0"]').count(), 1)
    assert.equal(await page.getByRole('tabpanel').count(), 1)
    assert.ok(page.url().endsWith(`${fake.runId}${address}`), page.url())
    await page.getByRole('tabpanel', { name }).waitFor()
  }
  await page.reload()
  await page.getByRole('tabpanel', { name: 'Changes' }).getByText('src/a.js').first().waitFor()
  // Skipping to the content leaves the view as it is.
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main')
  assert.ok(page.url().endsWith('/changes'))
})

test('every kind of change is shown plainly, in one column and in two', async (t) => {
  const removed =
    '--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n--- keep\n+++ keep\n \n-x\n+y\n' +
    '\\ No newline at end of file\n'
  const fake = await twoIterations(t, {
    changes: () => ({
      json: {
        ...changesOf(
          changed('q.sql', { diff: removed }),
          changed('new.js', { status: 'added', mode: { before: null, after: '100644' } }),
          changed('run.sh', {
            mode: { before: '100644', after: '100755' }, diff: '', additions: 0, deletions: 0,
          }),
          changed('to.js', { status: 'renamed', old_path: 'from.js' }),
          changed('logo.png', { binary: true, diff: '' }),
          changed('big.js', { diff: null, additions: 90_000 }),
          changed('config.js', { redacted: true }),
          changed('gone.js', { status: 'deleted', mode: { before: '100644', after: null } }),
          changed('link', { mode: { before: null, after: '120000' }, status: 'added' }),
        ),
        more: 12,
        left_out: [{ reason: 'secret', count: 2, paths: ['.env', 'key.pem'] }],
      },
    }),
  })
  const page = await open(t, fake, '/changes')
  const row = (name: string) => page.locator('.change-row', { hasText: name })
  await page.getByText('9 files changed · +90,007 −8').waitFor()
  await page.getByText('12 more changed files are not listed').waitFor()
  await page.getByText('Not compared: 2 paths (secret by name)').click()
  await page.getByText('key.pem').waitFor()
  for (const [name, expected] of [
    ['new.js', /new\.jsnew\+1−1/],
    ['run.sh', /mode 100644 → 100755/],
    ['to.js', /from\.js → to\.jsrenamed/],
    ['logo.png', /binary/],
    ['config.js', /secrets not shown/],
    ['gone.js', /deleted/],
    ['link', /link/],
  ] as const) assert.match(String(await row(name).locator('summary').textContent()), expected, name)
  for (const [name, expected] of [
    ['run.sh', 'No line differs.'],
    ['logo.png', 'Binary content: there are no lines to show.'],
    ['big.js', 'Not shown: it is too large, or its content was not kept.'],
    ['config.js', 'Secrets in this file are replaced.'],
  ] as const) {
    const isOpen = (await row(name).locator('details[open]').count()) > 0
    if (!isOpen) await row(name).locator('summary').click()
    await row(name).getByText(expected).waitFor()
  }
  // A removed line that begins with two dashes is no head.
  assert.equal(await row('q.sql').locator('.line.minus').first().textContent(), '--- keep\n')
  await assertAccessible(page, 'unified')
  await page.getByLabel('Side by side').check()
  const cells = (index: number) =>
    row('q.sql').locator('tbody tr').nth(index).locator('td').allTextContents()
  assert.deepEqual(await cells(1), ['1', '-- keep', '1', '++ keep'])
  assert.deepEqual(await cells(2), ['2', '', '2', ''])
  assert.deepEqual(await cells(3), ['3', 'x', '3', 'y'])
  assert.deepEqual(await cells(4), ['', '', '', '\\ No newline at end of file'])
  await assertAccessible(page, 'side by side')
  // Remembered.
  await page.reload()
  await row('q.sql').locator('table').waitFor()
  await page.getByLabel('Side by side').uncheck()
  await row('q.sql').locator('pre').waitFor()
})

test('changes are chosen by checkpoint, linked, and downloaded as a patch', async (t) => {
  const fake = await twoIterations(t, {
    changes: ({ query, headers }) => {
      if (headers.accept === 'text/x-diff') return { bytes: 'diff --git a/x b/x\n' }
      const [from, to] = [query.get('from') ?? 'start', query.get('to') ?? 'newest']
      return { json: changesOf(changed(`${from.slice(0, 6)}-${to.slice(0, 6)}.js`)) }
    },
  })
  const page = await open(t, fake, '/changes')
  await page.getByText('start-newest.js').first().waitFor()
  assert.deepEqual(await page.getByLabel('From').locator('option').allTextContents(), [
    'Start of the run', 'After iteration 1', 'After iteration 2',
  ])
  await page.getByLabel('From').selectOption('After iteration 1')
  await page.getByText('111111-newest.js').first().waitFor()
  await page.getByLabel('To', { exact: true }).selectOption('The folder now')
  await page.getByText('111111-now.js').first().waitFor()
  await goBy(page, -1)
  await page.getByText('111111-newest.js').first().waitFor()
  await page.reload()
  await page.getByText('111111-newest.js').first().waitFor()
  // Checkpoints have names as soon as the page knows the run's events.
  const named = { hasText: 'After iteration 1' }
  await page.getByLabel('From').locator('option:checked', named).waitFor({ state: 'attached' })
  const download = page.getByRole('button', { name: 'Download patch' })
  const saved = await savedBy(page, () => download.click())
  assert.match(saved.name, /^run-.+\.patch$/)
  assert.equal(saved.text, 'diff --git a/x b/x\n')
  assert.equal(fake.requests.at(-1)?.query.get('from'), '1'.repeat(64))
  fake.routes['changes'] = () => problem(403, 'redacted', 'config.js holds secrets', ['config.js'])
  await page.getByRole('button', { name: 'Download patch' }).click()
  await page.locator('.toast', { hasText: 'config.js holds secrets' }).waitFor()
  // From a checkpoint of the timeline.
  delete fake.routes['changes']
  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.getByRole('link', { name: 'Changes since the checkpoint before' }).last().click()
  await page.getByRole('tabpanel', { name: 'Changes' }).waitFor()
  assert.match(page.url(), /from=1{64}&to=2{64}$/)
  assert.equal(await active(page), 'Changes')
})

test('a run of which nothing was kept says so, and its page works', async (t) => {
  const fake = await openFake(t, {
    changes: () => ({
      json: { ...changesOf(), from: null, to: null, note: 'Nothing was kept of this run.' },
    }),
    files: ({ query }) =>
      query.get('at') === 'now'
        ? { json: listOf('', { path: 'a.js', type: 'file', size: 3, mode: '100644' }) }
        : problem(409, 'checkpoints_off', 'this run has no checkpoints'),
  })
  fake.engine.finish(fake.runId)
  const page = await open(t, fake, '/changes')
  await page.getByText('Nothing was kept of this run.').waitFor()
  assert.ok(await page.getByRole('button', { name: 'Download patch' }).isDisabled())
  await assertAccessible(page, 'nothing kept')
  await page.getByRole('tab', { name: 'Files' }).click()
  await page.getByRole('link', { name: 'a.js' }).waitFor()
  await page.getByLabel('At', { exact: true }).selectOption('Start of the run')
  await page.getByText('this run has no checkpoints').waitFor()
  // No copy can be made of it: a fork goes on in the folder, if the user wants that.
  await page.getByLabel('Go on with…').fill('again')
  await page.getByRole('button', { name: 'Start a fork' }).click()
  const dialog = page.getByRole('dialog', { name: 'Fork: End' })
  assert.equal(await dialog.getByLabel('Where').inputValue(), 'in_place')
  assert.equal(await dialog.getByLabel('Go on with…').inputValue(), 'again')
})

test('a checkpoint refreshes the changes of a live run under focus and scroll', async (t) => {
  let count = 30
  const files = (): Answer => ({
    json: changesOf(
      ...Array.from({ length: count }, (_, i) =>
        changed(`src/f${String(i * 2 + (count > 30 && i < 10 ? -1 : 0)).padStart(3, '0')}.js`),
      ),
    ),
  })
  const fake = await twoIterations(t, { changes: files })
  const page = await open(t, fake, '/changes')
  const summary = page.locator('.change-row summary', { hasText: 'f040.js' })
  await summary.focus()
  await page.keyboard.press('Enter')
  await page.locator('.change-row', { hasText: 'f040.js' }).locator('pre').waitFor()
  const top = async () => (await summary.boundingBox())!.y
  const before = await top()
  count = 40
  fake.checkpoint('3', 'iteration')
  await page.getByText('40 files changed').waitFor()
  assert.match(await active(page), /f040\.js/)
  assert.equal(await page.locator('.change-row').count(), 40)
  assert.equal(await page.locator('.change-row', { hasText: 'f040.js' }).locator('pre').count(), 1)
  // The browser puts back with the next frame what has moved.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))
  assert.ok(Math.abs((await top()) - before) < 40, `moved by ${(await top()) - before} px`)
  // They are read by themselves.
  const ends = page.getByLabel('To', { exact: true }).locator('option')
  await ends.nth(5).waitFor({ state: 'attached' })
  assert.equal(await ends.count(), 6)
})

test('5 000 events, 2 000 changed files and long diffs keep the page small', async (t) => {
  const added = Array.from({ length: 9_000 }, (_, i) => `+line ${i}\n`).join('')
  const long = `@@ -1,1 +1,9000 @@\n${added}`
  const fake = await twoIterations(t, {
    changes: () => ({
      json: changesOf(
        changed('a-long.js', { diff: long, additions: 9_000 }),
        ...Array.from({ length: 1_999 }, (_, i) =>
          changed(`src/${String(i).padStart(4, '0')}.js`),
        ),
      ),
    }),
  })
  const elements = () => page.evaluate(() => document.querySelectorAll('*').length)
  fake.engine.log(fake.runId, 5_000)
  fake.engine.log(fake.runId, 1, 'the last note')
  fake.set({ status: 'awaiting_human' })
  const page = await open(t, fake, '/changes')
  await page.getByText('2,000 files changed').waitFor()
  assert.ok((await elements()) < 3_000, `${await elements()} elements`)
  const row = page.locator('.change-row').first()
  await row.locator('summary').click()
  await row.locator('.line').nth(199).waitFor()
  assert.equal(await row.locator('.line').count(), 200)
  await page.getByRole('button', { name: 'Show 2,000 more lines' }).click()
  assert.equal(await row.locator('.line').count(), 2_200)
  assert.equal(await active(page), 'Show 2,000 more lines')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('101–200 of 2,000').waitFor()
  await page.getByText('src/0150.js').waitFor()
  assert.ok((await elements()) < 3_000, `${await elements()} elements`)
  await page.getByLabel('Find a changed file').fill('1998')
  await page.getByText('1 file changed').waitFor()
  await page.getByText('src/1998.js').waitFor()
  // The timeline is drawn when it is shown.
  await page.getByRole('tab', { name: 'Timeline' }).click()
  await page.locator('article.checkpoint').first().waitFor()
  assert.ok((await elements()) < 3_000, `${await elements()} elements`)
  await page.getByLabel('Find in this run').fill('the last note')
  await page.getByText('1 entry found').waitFor()
  await page.getByLabel('Find in this run').fill('')
  await page.locator('article.checkpoint').first().getByRole('button', { name: 'Restore' }).click()
  await page.getByText('and 1900 more').waitFor()
  await assertAccessible(page, 'a restore of many files')
})

test('what has the focus is not below the bar of messages', async (t) => {
  const fake = await twoIterations(t, {
    changes: () => ({
      json: changesOf(
        ...Array.from({ length: 60 }, (_, i) => changed(`src/${i}.js`, { diff: null })),
      ),
    }),
  })
  const page = await open(t, fake, '/changes')
  await page.getByText('60 files changed').waitFor()
  await page.getByRole('button', { name: 'Copy patch' }).focus()
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press('Tab')
    const [text, seen] = await page.evaluate(() => {
      const element = document.activeElement!
      const { x, y, width, height } = element.getBoundingClientRect()
      const top = document.elementFromPoint(x + width / 2, y + height / 2)
      return [element.textContent, element.contains(top)]
    })
    assert.match(String(text), new RegExp(`^src/${i}\\.js`))
    assert.ok(seen, `${text} is covered`)
  }
})

test('files are browsed folder by folder, previewed as text, and downloaded', async (t) => {
  const long = 'x'.repeat(99).concat('\n').repeat(4_000)
  const contents: Record<string, string | Uint8Array> = {
    'src/deep/a.js': 'const a = 1\r\nconst b = 2\n',
    'src/deep/bytes': new Uint8Array([1, 0, 2]),
    'src/deep/latin\udce9.txt': 'latin',
    'src/deep/long.txt': long,
  }
  const fake = await twoIterations(t, {
    files: ({ path }) => {
      // As the service has it: a byte that is not UTF-8 is sent as such.
      const name = path.slice('files/'.length).replace('%e9', '\udce9')
      const folder = decodeURIComponent(path.slice('files/'.length).replace('%e9', '')) || ''
      if (contents[name] !== undefined) return { bytes: contents[name] }
      const entry = (at: string, type: 'file' | 'folder' | 'link', mode = '100644') => ({
        path: at, type, size: 1_536, mode,
      })
      const top = [entry('src', 'folder'), entry('go.sh', 'file', '100755'), entry('l', 'link')]
      if (folder === '') return { json: listOf('', ...top) }
      if (folder === 'src') return { json: listOf('src', entry('src/deep', 'folder')) }
      const files = Object.keys(contents).map((at) => entry(at, 'file'))
      if (folder === 'src/deep') return { json: { ...listOf(folder, ...files), more: 3 } }
      return problem(404, 'file_not_found', 'there is no such file')
    },
  })
  const page = await open(t, fake, '/files')
  await page.getByText('1.5 KiB · executable').waitFor()
  await assertAccessible(page, 'a folder')
  await page.getByRole('link', { name: 'src/' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'deep/' }).waitFor()
  assert.equal(await active(page), 'src')
  await page.getByRole('link', { name: 'deep/' }).click()
  await page.getByText('3 more entries are not listed.').waitFor()
  await page.getByRole('link', { name: 'a.js' }).click()
  const text = page.getByLabel('Content of the file')
  await text.waitFor()
  assert.equal(await text.textContent(), 'const a = 1\nconst b = 2\n')
  await assertAccessible(page, 'a file')
  await page.reload()
  await text.waitFor()
  const saved = await savedBy(page, () => page.getByRole('button', { name: 'Download' }).click())
  assert.equal(saved.name, 'a.js')
  assert.equal(saved.text, contents['src/deep/a.js'])
  await page.getByRole('navigation', { name: 'Folder' }).getByRole('link', { name: 'deep' }).click()
  await page.getByRole('link', { name: 'bytes' }).click()
  await page.getByText('Not text, or not in UTF-8.').waitFor()
  await goBy(page, -1)
  await page.getByRole('link', { name: 'long.txt' }).click()
  await page.getByText('The first 256.0 KiB').waitFor()
  assert.equal((await text.textContent())?.length, 262_144)
  await goBy(page, -1)
  await page.getByRole('link', { name: 'latin\\udce9.txt' }).click()
  await page.getByText('5 bytes').waitFor()
  assert.equal(await text.textContent(), 'latin')
  await page.reload()
  await page.getByText('5 bytes').waitFor()
  assert.equal(fake.requests.at(-1)?.path, 'files/src/deep/latin%e9.txt')
  const answered = page.waitForResponse(/latin%e9\.txt\?.*at=1{64}/)
  await page.getByLabel('At', { exact: true }).selectOption('After iteration 1')
  await page.waitForURL(/at=1{64}/)
  await answered
  await page.getByText('5 bytes').waitFor()
})

test('a restore shows first what changes, is refused by name, forced, and undone', async (t) => {
  const restores: unknown[] = []
  const fake = await twoIterations(t, {
    changes: ({ query }) => ({
      json: query.get('from') === 'now'
        ? {
            ...changesOf(changed('src/a.js'), changed('new.js', { status: 'deleted' })),
            left_out: [{ reason: 'secret', count: 1, paths: ['.env'] }],
          }
        : changesOf(),
    }),
    restore: ({ body }) => {
      restores.push(body)
      if (restores.length === 1)
        return problem(409, 'workspace_changed', 'files were changed since', ['mine.js'])
      return {
        json: {
          restored: body?.['checkpoint_id'],
          checkpoint_id: 'f'.repeat(64),
          paths: ['src/a.js', 'new.js'],
          left_out: [],
        },
      }
    },
  })
  fake.set({ status: 'running' })
  const page = await open(t, fake)
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const entry = page.locator('article.checkpoint', { hasText: 'after iteration 1' })
  // A run that works cannot be restored.
  await entry.waitFor()
  assert.ok(await entry.getByRole('button', { name: 'Restore' }).isHidden())
  fake.engine.finish(fake.runId)
  await entry.getByRole('button', { name: 'Restore' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('2 files would change:').waitFor()
  assert.match(String(await dialog.textContent()), /src\/a\.js changes \+1 −1.*new\.js goes/)
  await dialog.getByText('Left as it is: 1 path (secret by name)').waitFor()
  await assertAccessible(page, 'the preview of a restore')
  await dialog.getByRole('button', { name: 'Restore' }).click()
  await dialog.getByText('mine.js').waitFor()
  await assertAccessible(page, 'a restore that is refused')
  assert.deepEqual(restores, [{ checkpoint_id: '1'.repeat(64) }])
  await dialog.getByRole('button', { name: 'Overwrite and restore' }).click()
  await page.getByText('Restored 2 files: after iteration 1.').waitFor()
  assert.deepEqual(restores[1], { checkpoint_id: '1'.repeat(64), force: true })
  assert.equal(await active(page), 'Undo')
  await assertAccessible(page, 'after a restore')
  await page.keyboard.press('Enter')
  await page.getByText('Restored 2 files: as before.').waitFor()
  assert.deepEqual(restores[2], { checkpoint_id: 'f'.repeat(64) })
  await page.getByRole('button', { name: 'Hide' }).click()
  await page.getByText('Restored 2 files').first().waitFor({ state: 'hidden' })
  assert.equal(await active(page), 'Timeline')
  // Escape changes nothing, and returns the focus.
  await entry.getByRole('button', { name: 'Restore' }).focus()
  await page.keyboard.press('Enter')
  await dialog.getByText('2 files would change:').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  assert.equal(await active(page), 'Restore')
  assert.equal(restores.length, 3)
})

test('what follows the end of a run is shown, also what others do', async (t) => {
  const fake = await twoIterations(t)
  fake.engine.finish(fake.runId)
  const page = await open(t, fake)
  await page.getByText('Achieved: the goal was met').waitFor()
  const facts = { operation_id: 'o', operation: 'restore' as const }
  fake.checkpoint('9', 'restore')
  fake.engine.append(fake.runId, 'files_changing', { ...facts, before: '9', after: '1', by: 'bob' })
  fake.engine.append(fake.runId, 'files_changed', { ...facts, paths: ['a.js'], skipped: ['b.js'] })
  fake.engine.append(fake.runId, 'changes_decided', { changes: 'discarded', by: 'bob' })
  // The list of runs tells that there is more.
  await page.getByText('Changes discarded by bob').waitFor()
  await page.getByText('A restore of files began by bob').waitFor()
  await page.getByText('Restored: 1 file').waitFor()
  await page.getByText('Left as they were: 1').click()
  await page.getByText('b.js').waitFor()
  await assertAccessible(page, 'after the end')
})

test('a fork is started from the timeline, with its message and bounds', async (t) => {
  const fork = '01930000-0000-7000-8000-0000000000ff'
  const fake = await twoIterations(t, {
    fork: ({ body }) => {
      if (body?.['max_iterations'] === 5)
        return problem(409, 'run_live', 'this run has not ended: fork it in a private copy')
      return { status: 201, json: { run_id: fork } }
    },
  })
  const page = await open(t, fake)
  await page.getByRole('button', { name: 'Unfold all' }).click()
  const head = page.locator('article.iteration').first()
  await head.getByRole('button', { name: 'Fork from here' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Fork: After iteration 1' })
  await dialog.getByLabel('Go on with…').fill('use a map')
  await fillNumber(dialog.getByLabel('Max iterations'), 5)
  assert.ok(await dialog.locator('option[value=in_place]').isDisabled())
  await assertAccessible(page, 'the dialog of a fork')
  await dialog.getByRole('button', { name: 'Start the fork' }).click()
  await dialog.getByText('this run has not ended').waitFor()
  await fillNumber(dialog.getByLabel('Max iterations'), 7)
  await dialog.getByLabel('Model').selectOption('builtin:repair')
  await dialog.getByRole('button', { name: 'Start the fork' }).click()
  await page.getByText('There is no such run.').waitFor()
  assert.ok(page.url().endsWith(fork))
  assert.deepEqual(fake.requests.filter(({ path }) => path === 'fork').at(-1)?.body, {
    at: { iteration: 1 }, message: 'use a map', model_name: 'builtin:repair', max_iterations: 7,
  })
  await goBy(page, -1)
  await page.locator('article.checkpoint', { hasText: 'start' })
    .getByRole('button', { name: 'Fork from here' }).click()
  await page.getByRole('dialog', { name: 'Fork: Start' }).waitFor()
})

test('a fork says what it was forked from, where it works, and with which messages', async (t) => {
  const fake = await twoIterations(t)
  fake.set({
    workspace: 'isolated',
    changes: 'applied',
    forked_from: { run_id: '01930000-0000-7000-8000-0000000000aa', seq: 12 },
  })
  fake.engine.append(fake.runId, 'run_created', {
    messages: [{ message_id: 'm', text: 'use a map', deliver: 'next_turn', by: 'ann' }],
  } as never)
  const page = await open(t, fake)
  const head = page.locator('.run-head')
  await head.getByText('Private copy').waitFor()
  await head.getByText('Changes applied').waitFor()
  const link = head.getByRole('link', { name: 'another run' })
  assert.match(String(await link.getAttribute('href')), /0000000000aa$/)
  await page.getByText('use a map').waitFor()
  await assertAccessible(page, 'a fork')
})

test('messages are sent to a live run, and what the model heard is told', async (t) => {
  let refuse: Answer | null = null
  const fake = await twoIterations(t, {
    messages: () => refuse ?? { status: 202, json: { message_id: 'm1' } },
    fork: () => ({ status: 201, json: { run_id: '01930000-0000-7000-8000-0000000000ff' } }),
  })
  const page = await open(t, fake)
  const box = page.getByLabel('Message to the run')
  const send = page.getByRole('button', { name: 'Send' })
  assert.ok(await send.isDisabled())
  await box.focus()
  await page.keyboard.type('look at the tests')
  await page.getByLabel('When it is heard').selectOption('At the next iteration')
  await box.focus()
  await page.keyboard.press('Control+Enter')
  await page.getByText('Sent.', { exact: true }).waitFor()
  assert.equal(await box.inputValue(), '')
  const [sent] = fake.requests.filter(({ path }) => path === 'messages')
  assert.deepEqual(sent?.body, { text: 'look at the tests', deliver: 'next_iteration' })
  assert.ok(sent?.headers['idempotency-key'])
  const message = { message_id: 'm1', text: 'look at the tests', by: 'ann' }
  fake.engine.append(fake.runId, 'user_message', { ...message, deliver: 'next_iteration' })
  await page.getByText('1 message not heard yet.').waitFor()
  const entry = page.locator('article.message')
  await entry.getByText('waits for the next iteration').waitFor()
  assert.match(String(await entry.textContent()), /Message by ann.*look at the tests/)
  await assertAccessible(page, 'a message')
  fake.engine.append(fake.runId, 'model_turn', {
    turn: 1, text: 'I did', stop: 'end', heard: ['m1'],
  } as never)
  await entry.getByText('heard', { exact: true }).waitFor()
  await page.getByText('Heard.', { exact: true }).waitFor()
  // Limits and refusals.
  await box.fill('é'.repeat(16_500))
  await page.getByText('33,000 of 32,768 bytes').waitFor()
  assert.ok(await send.isDisabled())
  refuse = problem(429, 'too_many_messages', '100 messages wait already')
  await box.fill('one more')
  await send.click()
  await page.getByText('100 messages wait already').waitFor()
  assert.equal(await box.inputValue(), 'one more')
  // It ends meanwhile: the same text starts a fork.
  refuse = problem(409, 'run_ended', 'the run has ended: fork it')
  await send.click()
  await page.getByText('the run has ended: fork it').waitFor()
  fake.engine.finish(fake.runId)
  const ended = page.getByLabel('Go on with…')
  assert.equal(await ended.inputValue(), 'one more')
  await assertAccessible(page, 'the box after the end')
  await page.getByRole('button', { name: 'Options…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Fork: End' })
  assert.equal(await dialog.getByLabel('Go on with…').inputValue(), 'one more')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Start a fork' }).click()
  await page.waitForURL(/0000000000ff$/)
  const forked = fake.requests.filter(({ path }) => path === 'fork').at(-1)
  assert.deepEqual(forked?.body, { message: 'one more' })
})

test('changes of a private copy are ticked, looked at, applied and discarded', async (t) => {
  const applies: Record<string, unknown>[] = []
  const restored: unknown[] = []
  const decide = (changes: 'applied' | 'pending' | 'discarded'): void => {
    fake.set({ changes })
    fake.engine.append(fake.runId, 'changes_decided', { changes, by: 'ann' })
  }
  let conflicts: string[] = ['src/b.js']
  const fake = await twoIterations(t, {
    changes: () => ({
      json: changesOf(
        changed('src/a.js'),
        changed('src/b.js'),
        changed('to.js', { status: 'renamed', old_path: 'from.js' }),
      ),
    }),
    apply: ({ body }) => {
      applies.push(body ?? {})
      const applied = (body?.['paths'] as string[] | undefined) ?? ['src/a.js', 'src/b.js', 'to.js']
      if (body?.['dry_run'] === true)
        return appliedAs({ applied, merged: ['src/a.js'], conflicts })
      if (body?.['force'] !== true && conflicts.length > 0)
        return problem(409, 'apply_conflict', 'changed by the run and by others', conflicts)
      decide('applied')
      return appliedAs({ applied, checkpoint_id: 'f'.repeat(64) })
    },
    restore: ({ body }) => {
      restored.push(body)
      decide('pending')
      return { json: { restored: '', checkpoint_id: '', paths: ['src/a.js'], left_out: [] } }
    },
    discard: () => {
      decide('discarded')
      return { status: 204 }
    },
  })
  fake.set({ workspace: 'isolated', cwd: '/home/ann/app' })
  fake.engine.finish(fake.runId)
  fake.set({ changes: 'pending' })
  const page = await open(t, fake, '/changes')
  await page.getByLabel('Request changes').waitFor()
  await page.getByText('3 of 3 files').waitFor()
  await assertAccessible(page, 'changes to apply')
  await page.getByRole('checkbox', { name: 'src/b.js' }).focus()
  await page.keyboard.press('Space')
  await page.getByText('2 of 3 files').waitFor()
  await page.getByRole('button', { name: 'Apply…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Apply the changes' })
  await dialog.getByText('2 files in /home/ann/app would change.').waitFor()
  assert.deepEqual(applies, [{ paths: ['src/a.js', 'to.js'], dry_run: true }])
  await dialog.getByText('Lines of both sides would be merged in 1 file').waitFor()
  await dialog.getByText('1 file changed in both places').waitFor()
  const apply = dialog.getByRole('button', { name: 'Apply' })
  assert.ok(await apply.isDisabled())
  await assertAccessible(page, 'conflicts')
  await dialog.getByLabel("Overwrite the others' version").check()
  await assertAccessible(page, 'force')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  // A conflict that appears after the look writes nothing.
  conflicts = []
  await page.getByRole('checkbox', { name: '2 of 3 files' }).check()
  await page.getByRole('button', { name: 'Apply…' }).click()
  await dialog.getByText('3 files in').waitFor()
  assert.deepEqual(applies.at(-1), { dry_run: true })
  conflicts = ['src/a.js']
  await apply.click()
  await dialog.getByText('changed by the run and by others').waitFor()
  assert.ok(await apply.isDisabled())
  await dialog.getByLabel("Overwrite the others' version").check()
  await apply.click()
  await page.getByText('Applied 3 files.').waitFor()
  assert.equal(await active(page), 'Undo')
  assert.deepEqual(applies.at(-1), { force: true })
  await page.locator('.run-head').getByText('Changes applied').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Apply…' }).count(), 0)
  assert.equal(await page.locator('.change-row input:visible').count(), 0)
  // What was applied can be taken back.
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Restored 1 file: as before.').waitFor()
  assert.deepEqual(restored, [{ checkpoint_id: 'f'.repeat(64) }])
  await page.locator('.run-head').getByText('Changes wait to be applied').waitFor()
  let answer = false
  page.on('dialog', (asked) => void (answer ? asked.accept() : asked.dismiss()))
  await page.getByRole('button', { name: 'Discard…' }).click()
  assert.equal(fake.requests.filter(({ path }) => path === 'discard').length, 0)
  answer = true
  await page.getByRole('button', { name: 'Discard…' }).click()
  await page.locator('.run-head').getByText('Changes discarded').waitFor()
})

test('what is held back says so, and is applied only if somebody ticks it', async (t) => {
  const applies: unknown[] = []
  const fake = await twoIterations(t, {
    changes: () => ({
      json: changesOf(
        changed('cases.json', { group: 'held_back' }),
        changed('src/a.js', { group: 'verified' }),
        changed('readme.md', { group: 'not_read' }),
        changed('test/new.js', { group: 'added', status: 'added' }),
      ),
    }),
    apply: ({ body }) => {
      applies.push(body)
      const isDefault = !('paths' in (body ?? {})) && body?.['include_held_back'] !== true
      return appliedAs({ applied: ['src/a.js'], held_back: isDefault ? ['cases.json'] : [] })
    },
  })
  fake.set({
    workspace: 'isolated', cwd: '/home/ann/app', held_back: ['cases.json'],
    changed_tests: ['test/old.js', 'test/new.js'], allowed: ['fixtures/a.json'],
  })
  fake.engine.finish(fake.runId)
  fake.set({ changes: 'pending' })
  const page = await open(t, fake, '/changes')
  await page.getByText('3 of 4 files').waitFor()
  for (const words of [
    'held back: the check passes with it as at the start', 'verified', 'not read by the check',
    'the check passes with and without it',
  ]) assert.equal(await page.locator('.change-row').getByText(words, { exact: true }).count(), 1)
  for (const words of ['Edited tests: test/old.js, test/new.js', 'Allowed to change: fixtures/a.json'])
    await page.getByText(words, { exact: true }).waitFor()
  await assertAccessible(page, 'groups of changes')
  const dialog = page.getByRole('dialog', { name: 'Apply the changes' })
  const look = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Apply…' }).click()
    await dialog.getByText('1 file in /home/ann/app would change.').waitFor()
  }
  await look()
  await dialog.getByText('Held back: 1 file').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('checkbox', { name: 'cases.json' }).check()
  await page.getByText('4 of 4 files').waitFor()
  await look()
  assert.equal(await dialog.getByText('Held back').count(), 0)
  await page.keyboard.press('Escape')
  await page.getByRole('checkbox', { name: 'readme.md' }).uncheck()
  await look()
  assert.deepEqual(applies, [
    { dry_run: true },
    { include_held_back: true, dry_run: true },
    { paths: ['cases.json', 'src/a.js', 'test/new.js'], dry_run: true },
  ])
})

test('hostile names, contents and texts are shown visibly, and are never markup', async (t) => {
  const name = `${HOSTILE}/${HIDDEN}\udcff.js`
  const left_out = [{ reason: 'secret' as const, count: 1, paths: [`.env${HIDDEN}`] }]
  const fake = await twoIterations(t, {
    changes: () => ({
      json: {
        ...changesOf(
          changed(name, { diff: `@@ -1 +1 @@ ${HIDDEN}\n-${HOSTILE}\n+${HIDDEN}\n` }),
          changed('b.js', { old_path: `${HIDDEN}${HOSTILE}`, status: 'renamed' }),
        ),
        left_out,
        note: `${HOSTILE}${HIDDEN}`,
      },
    }),
    files: ({ path }) =>
      path === 'files'
        ? { json: listOf('', { path: name, type: 'file', size: 1, mode: '100644' }) }
        : { bytes: `${HOSTILE}\n${HIDDEN}\n` },
    restore: () => problem(409, 'workspace_changed', HOSTILE + HIDDEN, [name]),
    fork: () => problem(422, 'invalid_request', HOSTILE + HIDDEN),
    messages: () => problem(429, 'too_many_messages', HOSTILE + HIDDEN),
    apply: () =>
      appliedAs({ applied: [name], merged: [name], conflicts: [name], held_back: [name] }),
  })
  const message = { message_id: 'm', text: HOSTILE + HIDDEN, by: HIDDEN + HOSTILE }
  fake.engine.append(fake.runId, 'user_message', { ...message, deliver: 'next_turn' })
  const facts = { operation_id: 'o', operation: 'apply' as const }
  fake.engine.append(fake.runId, 'files_changed', { ...facts, paths: [name], skipped: [name] })
  const page = await open(t, fake)
  const check = async (where: string): Promise<void> => {
    const text = await page.evaluate(() => document.documentElement.outerHTML)
    assert.doesNotMatch(text, /[\u202e\u200b\u0007\udc80-\udcff]/, where)
    assert.doesNotMatch(await page.title(), /owned/)
    assert.equal(await page.locator('main img, dialog img').count(), 0, where)
    await assertAccessible(page, where)
  }
  await page.getByRole('button', { name: 'Unfold all' }).click()
  await page.getByText('Left as they were').waitFor()
  await check('the timeline')
  await page.getByLabel('Message to the run').fill('x')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('#message-problem', { hasText: HOSTILE }).waitFor()
  await check('a refused message')
  await page.locator('article.checkpoint').first()
    .getByRole('button', { name: 'Fork from here' }).click()
  await page.getByRole('button', { name: 'Start the fork' }).click()
  await page.locator('dialog .error-text', { hasText: HOSTILE }).waitFor()
  await check('a refused fork')
  await page.keyboard.press('Escape')
  fake.set({ workspace: 'isolated', cwd: `/${HIDDEN}` })
  fake.engine.finish(fake.runId)
  await page.getByRole('tab', { name: 'Changes' }).click()
  await page.locator('.change-row', { hasText: 'a\\u202e\\u200b\\u0007b\\udcff.js' }).waitFor()
  await page.getByText('Not compared').click()
  await check('changes')
  await page.getByLabel('Side by side').check()
  await page.locator('.change-row table').first().waitFor()
  await check('side by side')
  await page.getByLabel('Side by side').uncheck()
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByText('changed in both places').waitFor()
  await check('apply')
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'The whole file' }).first().click()
  await page.getByLabel('Content of the file').getByText(HOSTILE).waitFor()
  await check('a file')
  const crumbs = page.getByRole('navigation', { name: 'Folder' })
  await crumbs.getByRole('link', { name: 'Files' }).click()
  await page.locator('.entries a').waitFor()
  await check('a folder')
  await page.getByRole('tab', { name: 'Timeline' }).click()
  const first = page.locator('article.checkpoint').first()
  await first.getByRole('button', { name: 'Restore' }).click()
  await page.getByRole('dialog').getByText('2 files would change').waitFor()
  await check('the preview of a restore')
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
  await page.getByText('Others changed these files').waitFor()
  await check('a refused restore')
})

for (const [width, colorScheme] of pairs([360, 1440], ['light', 'dark'] as const)) {
  test(`at ${width} px in ${colorScheme} every state is accessible`, async (t) => {
    const context = await openBrowser(t, {
      viewport: { width, height: width === 360 ? 740 : 900 },
      colorScheme,
      reducedMotion: 'reduce',
    })
    const path = `packages/${'a-very-long-name-of-a-folder/'.repeat(5)}index.js`
    const line = 'const text = "a long line without an end"; '.repeat(6)
    const fake = await twoIterations(t, {
      changes: () => ({
        json: changesOf(
          changed(path, { diff: `@@ -1 +1 @@\n-${line}\n+${line.toUpperCase()}\n` }),
          changed('b.js', {
            old_path: path, status: 'renamed', redacted: true, group: 'held_back',
          }),
        ),
      }),
      files: ({ path: at }) =>
        at === 'files'
          ? { json: listOf('', { path, type: 'file', size: 1, mode: '100755' }) }
          : { bytes: `${line}\n` },
      apply: () =>
        appliedAs({ applied: [path], merged: [path], conflicts: [path], held_back: [path] }),
    })
    fake.set({
      workspace: 'isolated',
      forked_from: { run_id: '01930000-0000-7000-8000-0000000000aa', seq: 12 },
    })
    const page = await open(t, fake, '', context)
    const shots = process.env['RUNWRIGHT_SCREENSHOTS']
    const check = async (state: string): Promise<void> => {
      if (shots !== undefined)
        await page.screenshot({ path: `${shots}/${state}-${width}-${colorScheme}.png` })
      await assertAccessible(page, state)
    }
    await page.getByRole('button', { name: 'Unfold all' }).click()
    await page.locator('article.checkpoint').first().waitFor()
    await check('timeline')
    fake.engine.finish(fake.runId)
    fake.set({ changes: 'pending' })
    await page.getByLabel('Request changes').waitFor()
    await page.locator('article.checkpoint').first()
      .getByRole('button', { name: 'Restore' }).click()
    await page.getByText('2 files would change').waitFor()
    await check('restore dialog')
    await page.keyboard.press('Escape')
    await page.locator('article.checkpoint').first()
      .getByRole('button', { name: 'Fork from here' }).click()
    await check('fork dialog')
    await page.keyboard.press('Escape')
    await page.getByRole('tab', { name: 'Changes' }).click()
    await page.locator('.change-row pre').first().waitFor()
    await check('changes unified')
    // On a phone both sides do not fit.
    assert.equal(await page.getByLabel('Side by side').isVisible(), width > 360)
    if (width > 360) {
      await page.getByLabel('Side by side').check()
      await page.locator('.change-row table').first().waitFor()
      await check('changes split')
    }
    await page.getByRole('button', { name: 'Apply…' }).click()
    await page.getByText('changed in both places').waitFor()
    await check('apply dialog')
    await page.keyboard.press('Escape')
    await page.getByRole('tab', { name: 'Files' }).click()
    await page.locator('.entries a').click()
    await page.getByLabel('Content of the file').waitFor()
    await check('file')
    await page.goto(`${fake.url}#/new`)
    await page.getByText('Private copy and checkpoints').click()
    await page.getByLabel('Where it works').selectOption('isolated')
    await check('start form')
  })
}
