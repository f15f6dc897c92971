import { inspect } from 'node:util'

/** Sets how `util.inspect` and `console.log` show the instances of a class. */
export function printAs<T>(
  type: { readonly prototype: T },
  print: (self: T, options: object) => string,
): void {
  Object.defineProperty(type.prototype, inspect.custom, {
    value(this: T, _depth: number, options: object): string {
      return print(this, options)
    },
  })
}
