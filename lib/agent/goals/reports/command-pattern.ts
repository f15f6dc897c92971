/** Words that may stand before the program of a command: variables, wrappers and their options. */
const BEFORE =
  '(?:(?:\\w+=(?:"[^"\\n]*"|\'[^\'\\n]*\'|[^\\s"\']*)|' +
  'npx|bunx|pnpx|yarn|pnpm|exec|time|env|cross-env|dotenv|c8|nyc|' +
  '(?:\\S*/)?node|-[\\w-]+(?:=\\S+)?) +)*'

/** Matches a command that starts `program` (source of a regular expression), by name or path. */
export function commandPattern(program: string): RegExp {
  const start = `(?:^|[;&|(]|-c ["'])[ \\t@-]*`
  return new RegExp(`${start}${BEFORE}(?:\\S*/)?${program}(?=[\\s"';&|)]|$)`, 'm')
}
