import type { TestContext } from 'node:test'

/** How often a work looks at the clock: long work does it to leave room for other work. */
export async function clockLooks(t: TestContext, work: () => Promise<unknown>): Promise<number> {
  const { mock } = t.mock.method(performance, 'now')
  try {
    await work()
    return mock.callCount()
  } finally {
    mock.restore()
  }
}
