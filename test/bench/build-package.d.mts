/** See `build-package.mjs`. */
export function buildPackage(): string
