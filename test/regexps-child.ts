/**
 * Loads modules of `lib`, given by their paths from the root, and prints the regular expressions
 * that are constructed meanwhile as JSON. It runs from source, where each has its own place.
 */
const found: { readonly place: string; readonly source: string; readonly flags: string }[] = []
const Original = globalThis.RegExp
const record = (args: ConstructorParameters<RegExpConstructor>): RegExp => {
  const made = new Original(...args)
  const place = /lib\/[\w/.-]+\.[jt]s:\d+/.exec(new Error().stack!.replaceAll('\\', '/'))?.[0]
  if (place !== undefined) found.push({ place, source: made.source, flags: made.flags })
  return made
}
globalThis.RegExp = new Proxy(Original, {
  construct: (_target, args) => record(args as ConstructorParameters<RegExpConstructor>),
  apply: (_target, _self, args) => record(args as ConstructorParameters<RegExpConstructor>),
})
for (const file of process.argv.slice(2)) await import(`../${file.replace(/\.ts$/, '.js')}`)
globalThis.RegExp = Original
console.log(JSON.stringify(found))
export {}
