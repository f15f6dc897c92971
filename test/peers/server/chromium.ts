/** A real Chromium (Debian's package) for tests: one process for all contexts of a file. */
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
} from 'playwright-core'

export const EXECUTABLE: string = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/**
 * Milliseconds for one step of a page, generous for slow machines: it only has to expire before the
 * test does, so that the error names the step.
 */
export const STEP_MS = 300_000

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

let running: Promise<Browser> | undefined
let contexts = 0

/**
 * A context with its own cookies, storage and window size. It is closed after the owner's `after`
 * hooks have run, and the browser with the last context.
 */
export async function openChromium(
  owner: { after(hook: () => Promise<void>): void },
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  contexts += 1
  running ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS, timeout: STEP_MS })
  const browser = await running
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  context.setDefaultTimeout(STEP_MS)
  owner.after(async () => {
    await context.close()
    contexts -= 1
    if (contexts > 0) return
    running = undefined
    await browser.close()
  })
  return context
}
