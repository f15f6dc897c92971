/** The version of this package, for `/api/health` and the API descriptions. */
export const VERSION = '0.1.0'
