/** Prints `ready`, waits for input, then acquires a directory's lock; see lock.test.ts. */
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'

console.log('ready')
process.stdin.once('data', () => {
  try {
    DirectoryLock.acquire(process.argv[2] ?? '')
    console.log('locked')
  } catch (error) {
    console.log((error as { readonly code?: string }).code ?? String(error))
  }
})
