/** What the test knows of a guide besides its text. */

/** How one block of a guide is followed, and what must come of it. */
export interface Rule {
  /** Text that no other block of the guide contains, or a pattern that no other matches. */
  readonly has: string | RegExp
  /** Whether the project has its bugs again before the block. */
  readonly bugs?: true
  /** Lines for the shell before a block that is none. */
  readonly first?: string
  /** Code around the block, in its language: what readers have, and uses of what it makes. */
  readonly before?: string
  readonly after?: string
  /** Lines for the shell that follow; `$block` is the file of the block, `$block.out` its output. */
  readonly then?: string
  /** What the output must match. */
  readonly out?: RegExp
  /**
   * The program listens: it is stopped after `then` and must end on SIGTERM by itself (`drains`),
   * or may die of it (`stops`), or it goes on for the blocks that follow (`stays`).
   */
  readonly serves?: 'drains' | 'stops' | 'stays'
  /** Other words for some of the block; the reason belongs into a comment. */
  readonly replace?: Readonly<Record<string, string>>
}

/** What must be there before the first block of a guide. */
export interface Guide {
  readonly document: string
  /** Packages of test/peers that its blocks import. */
  readonly packages?: readonly string[]
  /** Files by their path in the folder of the guide. */
  readonly files?: Readonly<Record<string, string>>
  /** The text assumes `npx runwright` in the folder of a project. */
  readonly service?: true
  /** Lines for the shell before the first block. */
  readonly start?: string
  /** A PostgreSQL in DATABASE_URL. */
  readonly postgres?: true
  /** The guide itself installs the package. */
  readonly installs?: true
  readonly rules?: readonly Rule[]
}

/** A block that is not followed. */
export interface NotRun {
  readonly document: string
  readonly has: string
  readonly why: string
}

const API_KEY = 'alice-key-0123456789'

/** The environment of all guides. */
export const environment = (standIn: string): Record<string, string> => ({
  ALICE_KEY: API_KEY,
  BOB_KEY: 'bob-key-0123456789',
  SCRAPE_KEY: 'scrape-key-0123456789',
  RUNWRIGHT_KEY: API_KEY,
  FEED_TOKEN: 'feed-token-0123456789',
  HOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  GROQ_API_KEY: 'stand-in-key-0123456789',
  GEMINI_API_KEY: 'stand-in-key-0123456789',
  ANTHROPIC_API_KEY: 'stand-in-key-0123456789',
  ANTHROPIC_BASE_URL: standIn,
  OPENAI_API_KEY: 'stand-in-key-0123456789',
  OPENAI_BASE_URL: `${standIn}/openai/v1`,
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
})

/** Whether a rule or reason is for this text. */
export const isFor = ({ has }: { readonly has: string | RegExp }, text: string): boolean =>
  typeof has === 'string' ? text.includes(has) : has.test(text)
