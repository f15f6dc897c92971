/** Holds the path of Bun's report; the command of the goal `bun-test` refers to it. */
export const BUN_REPORT_VARIABLE = 'RUNWRIGHT_BUN_REPORT'
