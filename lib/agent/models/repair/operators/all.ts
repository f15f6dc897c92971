import { arithmetic, assignment, grouping, operands } from './arithmetic.js'
import { emptyBlock, missingStatement, superfluousCondition } from './blocks.js'
import { missingAwait, swappedArguments, swappedBranches } from './calls.js'
import { chainedCall, missingCall } from './chains.js'
import { comparison, equality, logic, negation } from './comparisons.js'
import {
  booleanResult,
  constantCondition,
  narrowedCondition,
  strengthenedCondition,
} from './conditions.js'
import { missingDefault } from './defaults.js'
import { missingGuard } from './guards.js'
import { identifier, receiver } from './identifiers.js'
import { emptyLiteral, listElement, missingArgument } from './lists.js'
import { number } from './numbers.js'
import { offset } from './offsets.js'
import { guarded } from './optional.js'
import type { Operator } from './patch.js'
import { pattern } from './patterns.js'
import { property } from './properties.js'
import {
  exceptionClass,
  formattedField,
  indentation,
  lostResult,
  sharedDefault,
  slices,
} from './python.js'
import { missingResult, missingReturn } from './returns.js'
import { constructed, otherKeyword, removedStatement } from './statements.js'
import { string } from './strings.js'
import { boolean, empty } from './values.js'

/** All operators; each is applied at every token. None is specific to a program or a test. */
export const OPERATORS: readonly Operator[] = [
  comparison,
  equality,
  logic,
  negation,
  arithmetic,
  assignment,
  number,
  offset,
  operands,
  grouping,
  property,
  identifier,
  receiver,
  swappedArguments,
  swappedBranches,
  chainedCall,
  missingCall,
  missingAwait,
  missingArgument,
  boolean,
  empty,
  emptyLiteral,
  listElement,
  string,
  pattern,
  missingReturn,
  missingResult,
  missingDefault,
  missingGuard,
  missingStatement,
  emptyBlock,
  superfluousCondition,
  removedStatement,
  otherKeyword,
  constantCondition,
  booleanResult,
  strengthenedCondition,
  narrowedCondition,
  guarded,
  constructed,
  indentation,
  slices,
  sharedDefault,
  lostResult,
  exceptionClass,
  formattedField,
]
