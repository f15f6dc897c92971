/**
 * A real browser (Debian's package) for tests: Chromium, or Firefox with BROWSER=firefox. All files
 * of one run share a process; of Firefox one for each appearance.
 */
import { text } from 'node:stream/consumers'
import {
  chromium,
  firefox,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type BrowserServer,
  type LaunchOptions,
  type Locator,
  type Page,
} from 'playwright-core'
import { sharedService } from '../services/client.js'

export const EXECUTABLE: string = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const FIREFOX_EXECUTABLE = process.env['FIREFOX'] ?? '/usr/bin/firefox-esr'
export const inFirefox = process.env['BROWSER'] === 'firefox'

/**
 * Milliseconds for one step of a page, generous for slow machines: it only has to expire before the
 * test does, so that the error names the step.
 */
export const STEP_MS = 300_000

/**
 * A tester who takes so many milliseconds for each step, and ten times that after an address was
 * opened: what passes only in a hurry, while a page is still loading, fails. Set by `.ci/full`.
 */
const LATE_MS = Number(process.env['LATE_READER_MS'] ?? 0)

/**
 * A page that hears so many milliseconds late of answers, of what came into sight, of sizes and of
 * the next frame, as on a busy machine: what looks for a thing before it was drawn fails. Set by
 * `.ci/full`.
 */
const LATE_PAGE_MS = Number(process.env['LATE_PAGE_MS'] ?? 0)

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Names of other sites, which all resolve to this machine.
  '--host-resolver-rules=MAP *.test 127.0.0.1',
]

/** What Firefox has for a whole profile only, and its protocol no other way to set. */
export interface Appearance {
  readonly colorScheme?: BrowserContextOptions['colorScheme']
  readonly reducedMotion?: BrowserContextOptions['reducedMotion']
}

const running = new Map<string, { browser: Promise<Browser>; contexts: number }>()

/**
 * A context with its own cookies, storage and window size. It is closed after the owner's `after`
 * hooks have run, and the connection to the browser with the last context.
 */
export async function openBrowser(
  owner: { after(hook: () => Promise<void>): void },
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  const { colorScheme, reducedMotion, ...others } = options
  const appearance = inFirefox ? { colorScheme, reducedMotion } : {}
  const name = JSON.stringify(appearance)
  const shared = running.get(name) ?? {
    browser: connectOrLaunch(appearance),
    contexts: 0,
  }
  running.set(name, shared)
  shared.contexts += 1
  const browser = await shared.browser
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    ...(inFirefox ? others : options),
  })
  context.setDefaultTimeout(STEP_MS)
  // A browser of another process sends these once it has heard of a listener: without one from the
  // start, a wait for a response may begin after what the server of a test has caused.
  context.on('request', () => undefined)
  context.on('response', () => undefined)
  if (LATE_MS > 0) context.on('page', comeLate)
  if (LATE_PAGE_MS > 0) await context.addInitScript(HEAR_LATE)
  owner.after(async () => {
    await context.close()
    shared.contexts -= 1
    if (shared.contexts > 0) return
    running.delete(name)
    await browser.close()
  })
  return context
}

function comeLate(page: Page): void {
  const go = page.goto.bind(page)
  page.goto = async (...args) => {
    const response = await go(...args)
    await page.waitForTimeout(10 * LATE_MS)
    return response
  }
}

/**
 * Runs in the page, before its own scripts and before a test has taken its clock. A text, since
 * compiled functions call helpers that the page does not have.
 */
const HEAR_LATE = `
  const wait = setTimeout.bind(window)
  const later = (hear) => (...all) => wait(hear, ${LATE_PAGE_MS}, ...all)
  const [frame, ask] = [requestAnimationFrame.bind(window), fetch.bind(window)]
  window.requestAnimationFrame = (draw) => later(frame)(draw)
  window.fetch = (...all) =>
    ask(...all).then((answer) => new Promise((resolve) => later(resolve)(answer)))
  for (const name of ['IntersectionObserver', 'ResizeObserver'])
    window[name] = class extends window[name] {
      constructor(hear, options) {
        super(later(hear), options)
      }
    }`

/**
 * What the page and its browser complain about from now on: errors nobody caught, and errors on the
 * console that are not of these. A test compares it with nothing at its end.
 */
export function complaintsOf(page: Page, expected = /net::ERR_/): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => {
    // What Firefox says of a socket that does not open is no error of the page.
    const isOfBrowser = inFirefox && /^Firefox can.t establish a connection/.test(error.message)
    if (!isOfBrowser) complaints.push(String(error))
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !expected.test(message.text()))
      complaints.push(message.text())
  })
  return complaints
}

/**
 * Types a number. The driver of Firefox adds to what is in such a field, where `fill` should
 * replace it.
 */
export async function fillNumber(field: Locator, number: number): Promise<void> {
  await field.press('ControlOrMeta+a')
  await field.pressSequentially(String(number))
}

/** Gives a page another size; resolves once it has heard of that, and was laid out. */
export async function resize(
  page: Page,
  size: { readonly width: number; readonly height: number },
): Promise<void> {
  await page.setViewportSize(size)
  await page.waitForFunction(
    ({ width, height }) => innerWidth === width && innerHeight === height,
    size,
  )
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))
}

/**
 * Goes back or forward in the history of a tab. The driver of Firefox would wait for the load of a
 * page, which there is none of between two fragments.
 */
export async function goBy(page: Page, steps: number): Promise<void> {
  await page.evaluate((by) => setTimeout(() => history.go(by)), steps)
}

/** Its name and text. The driver of Firefox tells of no downloads: there, what the page gives it. */
export async function savedBy(
  page: Page,
  click: () => Promise<void>,
): Promise<{ name: string; text: string }> {
  if (!inFirefox) {
    const [saved] = await Promise.all([page.waitForEvent('download'), click()])
    return { name: saved.suggestedFilename(), text: await text(await saved.createReadStream()) }
  }
  const given = await page.evaluateHandle(() => {
    const { prototype } = HTMLAnchorElement
    const [make, click] = [URL.createObjectURL, prototype.click]
    let text = Promise.resolve('')
    URL.createObjectURL = (blob) => {
      if (blob instanceof Blob) text = blob.text()
      return make.call(URL, blob)
    }
    const given = new Promise<{ name: string; text: string }>((resolve) => {
      prototype.click = function () {
        void text.then((whole) => resolve({ name: this.download, text: whole }))
        Object.assign(URL, { createObjectURL: make })
        Object.assign(prototype, { click })
      }
    })
    return { given }
  })
  await click()
  return await given.evaluate(({ given: promise }) => promise)
}

/** What a click copies. The driver of Firefox lets nothing read the clipboard. */
export async function copiedBy(page: Page, click: () => Promise<void>): Promise<string> {
  if (inFirefox) {
    await page.evaluate(() => {
      const write = navigator.clipboard.writeText.bind(navigator.clipboard)
      navigator.clipboard.writeText = async (text) => {
        Object.assign(globalThis, { copied: text })
        await write(text)
      }
    })
  }
  // It says so for a moment only.
  await Promise.all([page.getByText('Copied').first().waitFor(), click()])
  return await page.evaluate(
    (own) => (own ? (globalThis as { copied?: string }).copied! : navigator.clipboard.readText()),
    inFirefox,
  )
}

/** The browser that all files of this run share, or one for this file alone. */
async function connectOrLaunch(appearance: Appearance): Promise<Browser> {
  const path = `browser/${encodeURIComponent(JSON.stringify(appearance))}`
  const address = await sharedService<string>(path)
  if (address === undefined) return await kind.launch(optionsFor(appearance))
  return await kind.connect(address, { slowMo: LATE_MS, timeout: STEP_MS })
}

/** Starts a browser to which several files connect. */
export function launchServer(appearance: Appearance): Promise<BrowserServer> {
  return kind.launchServer(optionsFor(appearance))
}

const kind = inFirefox ? firefox : chromium

function optionsFor({ colorScheme, reducedMotion }: Appearance): LaunchOptions {
  const both = { slowMo: LATE_MS, timeout: STEP_MS }
  if (!inFirefox) return { ...both, executablePath: EXECUTABLE, args: ARGUMENTS }
  return {
    ...both,
    // The name under which Playwright drives a Firefox that it did not build: by WebDriver BiDi.
    channel: 'moz-firefox',
    executablePath: FIREFOX_EXECUTABLE,
    firefoxUserPrefs: {
      'ui.systemUsesDarkTheme': colorScheme === 'dark' ? 1 : 0,
      'ui.prefersReducedMotion': reducedMotion === 'reduce' ? 1 : 0,
      'network.dns.forceResolve': '127.0.0.1',
      // The driver waits for ever for the load of a page that was kept whole.
      'fission.bfcacheInParent': false,
      'browser.sessionhistory.max_total_viewers': 0,
    },
  }
}
