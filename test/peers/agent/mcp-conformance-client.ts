/** The client that the conformance suite runs: for each scenario, what a host would do. */
import { openMcpServer, type McpOAuthOptions } from 'runwright/agent'
import { call } from '../../agent/mcp/support.js'

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const given = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  readonly client_id?: string
  readonly client_secret?: string
}
const url = process.argv.at(-1) ?? ''

/** The suite grants access without asking anybody. */
const byCode: McpOAuthOptions = {
  clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
  redirectUrl: 'http://localhost:3000/callback',
  authorize: async ({ url: page, signal }) => {
    const response = await fetch(page, { redirect: 'manual', signal })
    return response.headers.get('location') ?? ''
  },
}

/** A host that has a secret knows who may have it; here it has to ask. */
async function issuer(): Promise<string> {
  const place = new URL('/.well-known/oauth-protected-resource/mcp', url)
  const metadata: unknown = await (await fetch(place)).json()
  return (metadata as { authorization_servers: string[] }).authorization_servers[0] ?? ''
}

async function oauth(): Promise<McpOAuthOptions | undefined> {
  if (!scenario.startsWith('auth/')) return undefined
  const { client_id: clientId, client_secret: clientSecret } = given
  if (clientId === undefined || clientSecret === undefined) return byCode
  const registered = { clientId, clientSecret, issuer: await issuer() }
  return scenario === 'auth/client-credentials-basic' ? registered : { ...byCode, ...registered }
}

await using server = await openMcpServer({ name: 'suite', url, oauth: await oauth() })
for (const { name } of server.tools()) {
  const { output, exitCode } = await call(server, name.replace('suite__', ''), { a: 2, b: 3 })
  if (exitCode !== 0) throw new Error(output)
}
