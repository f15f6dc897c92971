/** Joins the parts of a test's name: file, suites, title. */
export const NAME_SEPARATOR = ' > '

/** True for the name of a file that is broken as a whole: a test has at least a title as well. */
export function isFile(name: string): boolean {
  return !name.includes(NAME_SEPARATOR)
}

/** The file that holds a test. */
export function fileOf(test: string): string {
  return test.slice(0, test.indexOf(NAME_SEPARATOR))
}
