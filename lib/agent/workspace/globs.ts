/**
 * Globs over relative paths with forward slashes: `*` and `?` match within one segment, `**` any
 * number of segments, `{a,b}` either alternative; a leading `!` excludes paths.
 *
 * All globs of a list are matched at once, by a state machine whose states are made when a path
 * first reaches them: a path costs one step a character, whatever the globs are, and nothing
 * backtracks.
 *
 * @module
 */

/** True for a relative path that a list of globs matches. */
export type PathMatcher = (path: string) => boolean

/** Compiles a list of globs: a path matches when a plain glob matches it and no `!` glob does. */
export function compileGlobs(globs: readonly string[]): PathMatcher {
  const key = JSON.stringify(globs)
  let matcher = compiled.get(key)
  if (matcher === undefined) {
    const included = new Machine(globs.filter((glob) => !glob.startsWith('!')))
    const out = globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1))
    const excluded = new Machine(out)
    matcher = (path) => included.matches(path) && !excluded.matches(path)
    if (compiled.size >= MAX_COMPILED) compiled.clear()
    compiled.set(key, matcher)
  }
  return matcher
}

/** True when a glob names one path only. */
export function isLiteral(glob: string): boolean {
  return !/[*?{}]/.test(glob) && !glob.startsWith('!')
}

/** All runs use the same few lists, so they stay compiled, up to this number. */
const MAX_COMPILED = 50
const compiled = new Map<string, PathMatcher>()
/** Places in all states that a machine keeps; beyond that it makes them anew. */
const MAX_KEPT = 200_000

/** A place in a glob. */
interface Place {
  readonly id: number
  /** Where one more character leads, if it is the wanted one. */
  readonly steps: { readonly wanted: string | 'segment' | 'any'; readonly to: Place }[]
  /** Where the glob may go on without a character. */
  readonly also: Place[]
  isEnd: boolean
}

/** All places that a path may have reached. */
interface State {
  readonly places: ReadonlySet<Place>
  readonly isEnd: boolean
  readonly next: Map<number, State>
}

class Machine {
  #places = 0
  #kept = 0
  readonly #states: Map<string, State> = new Map()
  readonly #start: State

  constructor(globs: readonly string[]) {
    const start = this.#place()
    for (const glob of globs) this.#add(glob, start)
    this.#start = this.#state([start])
  }

  matches(path: string): boolean {
    let state = this.#start
    for (let i = 0; i < path.length && state.places.size > 0; i++) {
      const code = path.charCodeAt(i)
      let next = state.next.get(code)
      if (next === undefined) {
        next = this.#after(state, path.charAt(i))
        this.#keep(next.places.size + 1)
        state.next.set(code, next)
      }
      state = next
    }
    return state.isEnd
  }

  /** Forgets all states but the first when there are too many. */
  #keep(places: number): void {
    this.#kept += places
    if (this.#kept <= MAX_KEPT) return
    this.#kept = 0
    this.#states.clear()
    this.#start.next.clear()
  }

  #place(): Place {
    this.#places += 1
    return { id: this.#places, steps: [], also: [], isEnd: false }
  }

  #add(glob: string, start: Place): void {
    const alternatives: { readonly from: Place; readonly to: Place }[] = []
    let at = start
    const step = (from: Place, wanted: string, to = this.#place()): Place => {
      from.steps.push({ wanted, to })
      return to
    }
    const pass = (from: Place, to = this.#place()): Place => {
      from.also.push(to)
      return to
    }
    for (let i = 0; i < glob.length; i++) {
      const char = glob[i]!
      const inner = alternatives.at(-1)
      if (glob.startsWith('**/', i)) {
        at = pass(at)
        const name = step(at, 'segment')
        step(name, 'segment', name)
        step(name, '/', at)
        i += 2
      } else if (char === '*') {
        at = pass(at)
        const isAny = glob[i + 1] === '*'
        step(at, isAny ? 'any' : 'segment', at)
        if (isAny) i += 1
      } else if (char === '?') at = step(at, 'segment')
      else if (char === '{') {
        alternatives.push({ from: at, to: this.#place() })
        at = pass(at)
      } else if (char === ',' && inner !== undefined) {
        pass(at, inner.to)
        at = pass(inner.from)
      } else if (char === '}' && inner !== undefined) {
        at = pass(at, inner.to)
        alternatives.pop()
      } else at = step(at, char)
    }
    for (const { to } of alternatives.reverse()) at = pass(at, to)
    at.isEnd = true
  }

  #after(state: State, char: string): State {
    const reached: Place[] = []
    for (const { steps } of state.places) {
      for (const { wanted, to } of steps) {
        const fits = wanted === char || wanted === 'any' || (wanted === 'segment' && char !== '/')
        if (fits) reached.push(to)
      }
    }
    return this.#state(reached)
  }

  #state(reached: readonly Place[]): State {
    const places = new Set(reached)
    // A set is walked to its end while it grows.
    for (const place of places) for (const more of place.also) places.add(more)
    const key = [...places].map(({ id }) => id).sort((a, b) => a - b).join()
    let state = this.#states.get(key)
    if (state === undefined) {
      state = { places, isEnd: [...places].some(({ isEnd }) => isEnd), next: new Map() }
      this.#states.set(key, state)
    }
    return state
  }
}
