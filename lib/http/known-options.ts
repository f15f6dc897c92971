/** What people write who come from another client. */
const ELSEWHERE: Readonly<Record<string, string>> = {
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

const plain = (name: string): string => name.toLowerCase().replaceAll('_', '')

/**
 * Refuses names that are not known, so that a slip of the pen is not ignored in silence.
 *
 * @throws TypeError naming the option, and the one that was probably meant.
 */
export function checkOptions(
  options: object,
  known: Readonly<Record<string, true>>,
  what: string,
): void {
  for (const name in options) {
    if (known[name] === true) continue
    const meant =
      Object.keys(known).find((one) => plain(one) === plain(name)) ?? ELSEWHERE[plain(name)]
    const hint =
      meant === undefined ? `; there are ${Object.keys(known).join(', ')}` : `; use ${meant}`
    throw new TypeError(`${name} is no option of ${what}${hint}`)
  }
}
