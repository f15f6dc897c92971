/** Asks for a service of this run; undefined when this file runs alone. */
export async function sharedService<T>(path: string): Promise<T | undefined> {
  const address = process.env['RUNWRIGHT_TEST_SERVICES']
  if (address === undefined) return undefined
  const headers = { connection: 'close' }
  const response = await fetch(`${address}/${path}`, { headers })
  if (!response.ok) throw new Error(`${path} did not start: ${await response.text()}`)
  return (await response.json()) as T
}
