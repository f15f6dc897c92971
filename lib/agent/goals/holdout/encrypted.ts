import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { StoreError } from '../../errors.js'
import type { HoldoutStore } from '../../holdout-store.js'
import type { HeldOutTests, HoldoutTell } from './held-out-tests.js'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** What is encrypted, as JSON; contents in base64. */
interface Plain {
  readonly command: string
  readonly tell: HoldoutTell
  /** Absent in runs of earlier versions. */
  readonly allowedSkips?: number | null
  readonly files: readonly (readonly [path: string, content: string])[]
}

/** A key for the held-out tests of one run, as its log stores it. */
export function newKey(): string {
  return randomBytes(KEY_BYTES).toString('base64')
}

/** Held-out tests as they are stored: nonce, tag and what is encrypted; of no use to other runs. */
export function encrypt(tests: HeldOutTests, key: string, runId: string): Buffer {
  const { allowedSkips, command, files, tell } = tests
  const contents = [...files].map(
    ([path, content]) => [path, Buffer.from(content).toString('base64')] as const,
  )
  const plain: Plain = { command, tell, files: contents, allowedSkips }
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, Buffer.from(key, 'base64'), nonce)
  cipher.setAAD(Buffer.from(runId))
  const text = cipher.update(JSON.stringify(plain), 'utf8')
  const rest = cipher.final()
  return Buffer.concat([nonce, cipher.getAuthTag(), text, rest])
}

/**
 * The held-out tests of a run that has some.
 *
 * @throws {@link StoreError} when the store does not have them, or not as they were stored.
 */
export async function readHeldOutTests(
  store: HoldoutStore | undefined,
  runId: string,
  key: string,
): Promise<HeldOutTests> {
  const stored = await store?.get(runId)
  if (stored != null) return decrypt(stored, key, runId)
  const text = `the held-out tests of run ${runId} are missing in the store`
  throw new StoreError('ERR_AGENT_STORE_CORRUPT', text)
}

function decrypt(stored: Uint8Array, key: string, runId: string): HeldOutTests {
  const bytes = Buffer.from(stored)
  try {
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const options = { authTagLength: TAG_BYTES }
    const decipher = createDecipheriv(CIPHER, Buffer.from(key, 'base64'), nonce, options)
    decipher.setAAD(Buffer.from(runId))
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES))
    const plain = JSON.parse(Buffer.concat([text, decipher.final()]).toString()) as Plain
    const files = plain.files.map(
      ([path, content]) => [path, Buffer.from(content, 'base64')] as const,
    )
    const { allowedSkips = null, command, tell } = plain
    return { command, tell, files: new Map(files), allowedSkips }
  } catch {
    // Without the cause: an error of the JSON parser quotes what it parsed.
    const text = `the held-out tests of run ${runId} are damaged`
    throw new StoreError('ERR_AGENT_STORE_CORRUPT', text)
  }
}
