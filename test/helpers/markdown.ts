import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The root folder of the repository. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url))

/** Reads a file by its path from the root. */
export const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The paths below `folder` with this ending, without generated documents. */
export function listFiles(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith(ending) && !path.startsWith('docs/api/'))
    .sort()
}

/** The paths of all documents. */
export const documents: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...listFiles('docs', '.md'),
]

/** A fenced block: its info string, the number of its first line, and its text. */
export interface Block {
  readonly document: string
  readonly info: string
  readonly line: number
  readonly text: string
}

interface OpenFence {
  readonly fence: string
  readonly indent: string
  readonly text: string[]
}

/** A parsed document. */
export interface Markdown {
  readonly blocks: readonly Block[]
  /** The document without its fenced blocks, line for line. */
  readonly prose: readonly string[]
}

/** Parses a document; a block that is not closed is an error. */
export function parseMarkdown(document: string): Markdown {
  const blocks: Block[] = []
  const prose: string[] = []
  let open: (Omit<Block, 'document' | 'text'> & OpenFence) | null = null
  for (const [index, line] of read(document).split('\n').entries()) {
    const [, indent = '', fence, info = ''] = /^(\s*)(`{3,}|~{3,})\s*([^`]*?)\s*$/.exec(line) ?? []
    if (open === null) {
      prose.push(fence === undefined ? line : '')
      if (fence !== undefined) open = { fence, indent, info, line: index + 2, text: [] }
    } else {
      prose.push('')
      if (fence !== undefined && fence.startsWith(open.fence) && info === '') {
        blocks.push({ document, info: open.info, line: open.line, text: open.text.join('\n') })
        open = null
      } else open.text.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line)
    }
  }
  assert.equal(open, null, `${document}: the block at line ${open?.line} is not closed`)
  return { blocks, prose }
}

/** All documents, parsed, by path. */
export const markdown: ReadonlyMap<string, Markdown> = new Map(
  documents.map((document) => [document, parseMarkdown(document)]),
)

/** Whether a block is a TypeScript sample. */
export const isTypeScript = ({ info }: Block): boolean => /^(ts|typescript)\b/.test(info)

/** The TypeScript samples of all documents. */
export const samples: readonly Block[] = documents
  .flatMap((document) => markdown.get(document)!.blocks)
  .filter(isTypeScript)

/** The info string of a sample that stands behind the first one of its document. */
export const CONTINUES = 'ts continues'
