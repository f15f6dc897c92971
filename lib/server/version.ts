/** The version of this package, as `/api/health` and the API descriptions tell it. */
export const VERSION = '0.1.0'
