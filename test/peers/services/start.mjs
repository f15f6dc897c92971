import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/**
 * Starts the program that starts what test files share; see `program.ts`.
 *
 * @returns {Promise<{ env: Record<string, string>, end(): Promise<void> }>} What test files find in
 *   their environment, and how to end what was started.
 */
export async function startServices() {
  const program = fileURLToPath(new URL('program.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // Signals of a terminal are for the tests: these services end after them.
    detached: true,
  })
  const exited = once(child, 'exit')
  const [address] = await Promise.race([
    once(child.stdout, 'data'),
    exited.then(([code]) => Promise.reject(new Error(`test services ended: ${code}`))),
  ])
  return {
    env: { RUNWRIGHT_TEST_SERVICES: String(address) },
    async end() {
      child.stdin.end()
      await exited
    },
  }
}
