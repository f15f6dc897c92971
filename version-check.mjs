/**
 * Has the code of a file tell an old Node which one is needed, in syntax that Node 14 reads: a
 * program prints that, and others throw it. It is unchanged if it imports another file, which runs
 * before.
 *
 * @param {string} code
 * @param {string} range That of `engines` in package.json, such as `>=20.19`.
 */
export function withVersionCheck(code, range) {
  if (/^(?:im|ex)port\b[^;]*["']\.\.?\//m.test(code)) return code
  const [, hashbang = '', rest = ''] = /^(#!.*\n)?([^]*)$/.exec(code) ?? []
  const [oldest = '', leastMajor, leastMinor] = /(\d+)\.(\d+)/.exec(range) ?? []
  const tell = hashbang === '' ? 'throw new Error(told)' : 'console.error(told), process.exit(1)'
  return `${hashbang}{
  const { version, versions } = globalThis.process ?? {};
  const told = "runwright needs Node ${oldest} or newer; this is " + version;
  const [major, minor] = (versions?.node ?? "${oldest}").split(".").map(Number);
  if (major < ${leastMajor} || (major === ${leastMajor} && minor < ${leastMinor})) ${tell};
}
${rest}`
}
