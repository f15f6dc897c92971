/**
 * Checks the types of tools whose schemas are of the real libraries: this file only has to compile.
 */
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import * as z from 'zod'
import * as mini from 'zod/mini'
import { defineTool, toJsonSchema, type JsonSchema, type ToolArguments } from 'runwright/agent'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Flat<T> = { [K in keyof T]: T[K] }
const yes = <T extends true>(value?: T): T | undefined => value
const about = { name: 'x', description: 'x' } as const

// zod: execute gets the output, with defaults and conversions.
defineTool({
  ...about,
  parameters: z.object({
    city: z.string(),
    days: z.number().default(3),
    size: z.string().transform((text) => text.length),
    unit: z.enum(['C', 'F']).optional(),
  }),
  effect: 'idempotent',
  plan: async (args) => ({ days: args.days }),
  verify: async ({ size }) => (size > 1 ? 'done' : 'undone'),
  execute(args) {
    type Expected = { city: string; days: number; size: number; unit?: 'C' | 'F' | undefined }
    yes<Equal<typeof args, Expected>>()
    return args.city
  },
})

// A union of objects stays one.
defineTool({
  ...about,
  parameters: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('file'), path: z.string() }),
    z.object({ kind: z.literal('url'), url: z.string() }),
  ]),
  execute: (args) => (args.kind === 'file' ? args.path : args.url),
})

// zod/mini has no JSON Schema of its own; z.toJSONSchema() adds it.
defineTool({
  ...about,
  parameters: mini.toJSONSchema(mini.object({ city: mini.string() })),
  execute(args) {
    yes<Equal<typeof args, { city: string }>>()
    return args.city
  },
})

// arktype: morphs and defaults.
defineTool({
  ...about,
  parameters: type({ city: 'string', 'days?': 'number.integer', size: 'string = "L"' }),
  execute(args) {
    yes<Equal<typeof args, { city: string; days?: number; size: string }>>()
    return args.city
  },
})

// valibot, wrapped.
const valibot = toStandardJsonSchema(
  v.object({ city: v.string(), days: v.optional(v.number(), 3) }),
)
defineTool({
  ...about,
  parameters: valibot,
  execute(args) {
    yes<Equal<typeof args, { city: string; days: number }>>()
    return args.city
  },
})
yes<Equal<ToolArguments<typeof valibot>, { city: string; days: number }>>()

// Plain JSON Schema, as before.
defineTool({
  ...about,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute(args) {
    yes<Equal<Flat<typeof args>, { readonly city: string }>>()
    return args.city
  },
})

// @ts-expect-error it validates, but has no JSON Schema
defineTool({ ...about, parameters: v.object({ city: v.string() }), execute: () => '' })

const written: JsonSchema = toJsonSchema(z.object({ city: z.string() }))
yes<Equal<typeof written, JsonSchema>>()
