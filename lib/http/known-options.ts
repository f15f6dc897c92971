/** Option names of other HTTP clients, in lower case, with the name to use here. */
const FOREIGN_NAMES: Readonly<Record<string, string>> = {
  body: 'json, data, content or files',
  form: 'data',
  formdata: 'data or files',
  query: 'params',
  qs: 'params',
  searchparams: 'params',
  prefixurl: 'baseUrl',
  redirect: 'followRedirects',
  hooks: 'eventHooks',
  interceptors: 'eventHooks',
  responsetype: 'stream() or the response itself',
  rejectunauthorized: 'verify',
}

const normalized = (name: string): string => name.toLowerCase().replaceAll('_', '')

/**
 * Rejects unknown option names, so that a misspelt option is not silently ignored.
 *
 * @throws TypeError naming the option and, if it can be guessed, the intended one.
 */
export function checkOptions(
  options: object,
  known: Readonly<Record<string, true>>,
  what: string,
): void {
  for (const name in options) {
    if (known[name] === true) continue
    const key = normalized(name)
    const names = Object.keys(known)
    const intended = names.find((name) => normalized(name) === key) ?? FOREIGN_NAMES[key]
    const hint = intended === undefined ? `the options are ${names.join(', ')}` : `use ${intended}`
    throw new TypeError(`${name} is not an option of ${what}; ${hint}`)
  }
}
