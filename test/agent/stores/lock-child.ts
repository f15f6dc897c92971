/** Says `ready`, waits for a word, takes the lock of a directory and holds it; see lock.test.ts. */
import { DirectoryLock } from '../../../lib/agent/stores/file/lock.js'

console.log('ready')
process.stdin.once('data', () => {
  try {
    DirectoryLock.acquire(process.argv[2] ?? '')
    console.log('locked it')
  } catch (error) {
    console.log((error as { readonly code?: string }).code ?? String(error))
  }
})
