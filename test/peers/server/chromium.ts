/** A real Chromium (Debian's package) for tests. */
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContext, type BrowserContextOptions } from 'playwright-core'

export const EXECUTABLE: string = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A browser with a profile of its own; both are gone when the owner's `after` hooks have run. */
export async function openChromium(
  owner: { after(hook: () => Promise<void>): void },
  options: BrowserContextOptions & { readonly args?: readonly string[] } = {},
): Promise<BrowserContext> {
  const { args = [], ...context } = options
  const profile = mkdtempSync(join(tmpdir(), 'runwright-chromium-'))
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: EXECUTABLE,
    args: [...ARGUMENTS, ...args],
    viewport: { width: 1440, height: 900 },
    ...context,
  })
  owner.after(async () => {
    await browser.close()
    // Its last process may still be writing.
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  })
  return browser
}
