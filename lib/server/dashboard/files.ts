import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('./static/', import.meta.url))

/**
 * The files of the page by name. The build replaces this module by one that holds the files
 * themselves, so that a bundled program needs no folder beside it.
 */
export const PAGE_FILES: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')]),
)
