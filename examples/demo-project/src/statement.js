import { daysOverdue } from './loans.js'
import { lateFee, totalFee } from './fees.js'

/** Cents as a price: 1250 is `12.50`. */
export function formatCents(cents) {
  const whole = Math.floor(cents / 100)
  const rest = String(cents % 100).padEnd(2, '0')
  return `${whole}.${rest}`
}

/** One line for each overdue loan and one for the sum. */
export function statement(reader, loans, now) {
  const lines = loans
    .filter((loan) => daysOverdue(loan, now) > 0)
    .map((loan) => `${loan.title}: ${daysOverdue(loan, now)} days, ${formatCents(lateFee(loan, now))}`)
  if (lines.length === 0) return `${reader.name}: nothing is due`
  return [`${reader.name} owes ${formatCents(totalFee(loans, now, reader.years))}`, ...lines].join('\n')
}
