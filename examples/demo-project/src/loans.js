const DAY = 24 * 60 * 60 * 1000

/** Days for which a book is lent. */
export const LOAN_DAYS = 21

/** How often a loan can be extended. */
export const MAX_EXTENSIONS = 2

/** The day a loan is due, as a time in milliseconds. */
export function dueAt(loan) {
  return loan.lentAt + (1 + loan.extensions) * LOAN_DAYS * DAY
}

/** Whole days by which a loan is overdue; 0 when it is not. */
export function daysOverdue(loan, now) {
  return Math.max(0, Math.floor((now - dueAt(loan)) / DAY))
}

/** Extends a loan once more. */
export function extend(loan) {
  if (loan.extensions > MAX_EXTENSIONS) throw new Error('this loan cannot be extended again')
  return { ...loan, extensions: loan.extensions + 1 }
}
