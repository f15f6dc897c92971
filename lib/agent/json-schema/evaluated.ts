/**
 * The parts of one value that keywords have looked at, which decides what `unevaluatedProperties`
 * and `unevaluatedItems` apply to (JSON Schema Core 2020-12, section 11). Kept only for schemas
 * that have one of the two.
 */
export class Evaluated {
  allFields = false
  readonly fields: Set<string> = new Set()
  allItems = false
  /** The first items of a list, up to this number. */
  items = 0
  /** Items that `contains` has found. */
  readonly found: Set<number> = new Set()

  /** Takes over what a schema that the value matches has looked at. */
  add(other: Evaluated): void {
    this.allFields ||= other.allFields
    for (const name of other.fields) this.fields.add(name)
    this.allItems ||= other.allItems
    this.items = Math.max(this.items, other.items)
    for (const index of other.found) this.found.add(index)
  }

  hasItem(index: number): boolean {
    return this.allItems || index < this.items || this.found.has(index)
  }
}
