import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Texts by path. */
export type Files = Readonly<Record<string, string>>

/** Writes files below a folder, and makes the folders that they are in. */
export function writeFiles(folder: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** Returns the files of a folder by name, without those of its folders. */
export function filesIn(folder: string): Record<string, string> {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    files.map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]),
  )
}
