/** Child processes that drive runs of a PostgreSQL store until they die. */
import type pg from 'pg'
import { PostgresStore } from 'runwright/agent'
import * as programs from '../../agent/crash/programs.js'
import type { DrivePlan } from '../../agent/crash/scenario.js'
import type { Life } from '../../helpers/mortal-child.js'
import { poolTo, type Connection } from './postgres.js'

/** The tables of a store. */
export interface Tables {
  readonly connection: Connection
  readonly schema: string
  readonly leaseMs: number
}

/** Drives runs. Steps: appends. */
export async function drive(plan: DrivePlan & Tables, life: Life): Promise<void> {
  const { store, pool } = open(plan, life)
  await programs.drive(plan, { store, life })
  await pool.end()
}

/** Drives a tree of runs to its end. Steps: writes. */
export async function driveTree(plan: programs.TreePlan & Tables, life: Life): Promise<void> {
  const { store, pool } = open(plan, life)
  await life.countFiles()
  await programs.driveTree(plan, { store, life })
  await pool.end()
}

function open(
  { connection, schema, leaseMs }: Tables,
  life: Life,
): { readonly store: PostgresStore; readonly pool: pg.Pool } {
  const pool = poolTo(connection)
  const store = new PostgresStore({ pool, schema, leaseMs, pollMs: 50 })
  life.countAppends(store)
  return { store, pool }
}
