/** What is to be looked at. All folders are absolute, real paths. */
export interface DependencyJob {
  readonly folder: string
  /** Packages that are found above the folder. */
  readonly above: string | null
  readonly closed: readonly string[]
}

/** What there is, by path: see `Dependencies`. */
export interface FoundDependencies {
  readonly since: number
  readonly folders: readonly string[]
  readonly packages: Readonly<Record<string, string>> | null
  readonly marks: Readonly<Record<string, string>>
  /** Marks of what lies in caches. */
  readonly caches: Readonly<Record<string, string>>
  readonly isCoarse: boolean
}

/** How they differ from what they were. */
export interface DependencyDifferences {
  readonly folders: readonly string[]
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly modified: readonly string[]
  readonly caches: readonly string[]
}
