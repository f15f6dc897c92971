type Style = Record<string, unknown>
interface Run {
  readonly text: string
  readonly style: Style
}
interface Ansi {
  linesOf(text: string): Run[][]
  withoutStyles(text: string): string
  classesOf(style: Style): string
}
interface Search {
  matchesOf(event: object, progress: object, words: string): number
  wordsOf(typed: string): string
}

export const folder: URL = new URL('../../../lib/server/dashboard/static/', import.meta.url)
export const ansi: Ansi = (await import(`${folder.href}ansi.js`)) as Ansi
export const search: Search = (await import(`${folder.href}search.js`)) as Search

export const event = (kind: string, payload: object): object => ({ kind, payload, seq: 1 })
