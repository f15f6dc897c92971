import { arithmetic, assignment, grouping, number, offset, operands } from './arithmetic.js'
import {
  chainedCall,
  missingAwait,
  missingCall,
  swappedArguments,
  swappedBranches,
} from './calls.js'
import { comparison, equality, logic, negation } from './comparisons.js'
import { boolean, empty, pattern, string } from './literals.js'
import { identifier, property, receiver } from './names.js'
import type { Operator } from './patch.js'
import { indentation, lostResult, sharedDefault, slices } from './python.js'
import {
  constructed,
  guarded,
  missingResult,
  missingReturn,
  narrowedCondition,
  otherKeyword,
  removedStatement,
} from './statements.js'

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
  boolean,
  empty,
  string,
  pattern,
  missingReturn,
  missingResult,
  removedStatement,
  otherKeyword,
  narrowedCondition,
  guarded,
  constructed,
  indentation,
  slices,
  sharedDefault,
  lostResult,
]
