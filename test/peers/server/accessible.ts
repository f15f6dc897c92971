/** What must be so in every state of the page: nothing cut off, and nothing that axe finds. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  id: string
  nodes: { html: string; failureSummary: string }[]
}

interface Axe {
  run(part: string): Promise<{ violations: Violation[] }>
}

/**
 * Runs axe on the page, or the parts of it that a selector names, and looks for sideways scrolling;
 * `where` names the state in failures.
 */
export async function assertAccessible(
  page: Page,
  where: string,
  part = 'html',
): Promise<void> {
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(source)
  const found = await page.evaluate(async (selector) => {
    const { axe } = globalThis as unknown as { axe: Axe }
    const { violations } = await axe.run(selector)
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
  }, part)
  assert.deepEqual(found, [], where)
  const wide = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    return scrollWidth - clientWidth
  })
  assert.equal(wide, 0, `${where} scrolls sideways by ${wide} px`)
}
