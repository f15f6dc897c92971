const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const TIME = '([0-9]{2}):([0-9]{2}):([0-9]{2})'
const MONTH = `(${MONTHS.join('|')})`

/** The three forms of RFC 9110, section 5.6.7; captures day, month, year, time in this order. */
const IMF_FIXDATE = new RegExp(
  `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) ${MONTH} ([0-9]{4}) ${TIME} GMT$`,
)
const RFC_850 = new RegExp(
  `^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, ([0-9]{2})-${MONTH}-([0-9]{2}) ${TIME} GMT$`,
)
/** The day is blank-padded, the year comes last. */
const ASCTIME = new RegExp(
  `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ${MONTH} ([0-9 ][0-9]) ${TIME} ([0-9]{4})$`,
)

/**
 * An HTTP date in ms since the Unix epoch; null for anything else. Strict, as caches must be: what
 * is no date, `Expires: 0` first of all, is in the past (RFC 9111, section 5.3).
 *
 * @param now - decides the century of a year with two digits.
 */
export function parseHttpDate(value: string | null, now: number): number | null {
  if (value === null) return null
  const fixed = IMF_FIXDATE.exec(value) ?? RFC_850.exec(value)
  if (fixed !== null) {
    const [, day, month, year, ...time] = fixed
    return utc(year!.length === 2 ? fullYear(Number(year), now) : Number(year), month!, day!, time)
  }
  const asctime = ASCTIME.exec(value)
  if (asctime === null) return null
  const [, month, day, hour, minute, second, year] = asctime
  return utc(Number(year), month!, day!, [hour!, minute!, second!])
}

/** More than 50 years ahead means the past century (RFC 9110, section 5.6.7). */
function fullYear(year: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear()
  const guess = thisYear - (thisYear % 100) + year
  return guess > thisYear + 50 ? guess - 100 : guess
}

function utc(
  year: number,
  month: string,
  day: string,
  [hour, minute, second]: readonly string[],
): number | null {
  // A leap second is 60.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60 || year < 1000) return null
  const index = MONTHS.indexOf(month)
  const at = Date.UTC(year, index, Number(day), Number(hour), Number(minute), Number(second))
  // 31 April would be 1 May.
  return new Date(Date.UTC(year, index, Number(day))).getUTCDate() === Number(day) ? at : null
}
