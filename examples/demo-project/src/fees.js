import { daysOverdue } from './loans.js'

/** Cents for each day. */
export const DAILY_FEE = 20

/** Cents that a single loan costs at most. */
export const MAX_FEE = 500

/** The late fee of a loan, in cents. */
export function lateFee(loan, now) {
  return Math.max(daysOverdue(loan, now) * DAILY_FEE, MAX_FEE)
}

/** The share of a fee that is waived: a tenth for each full year of membership, half at most. */
export function discount(years) {
  return Math.min(0.5, Math.floor(years) * 0.1)
}

/** What a reader owes for several loans, in cents. */
export function totalFee(loans, now, years = 0) {
  const sum = loans.reduce((total, loan) => total + lateFee(loan, now), 0)
  return Math.round(sum * (1 - discount(years)))
}
