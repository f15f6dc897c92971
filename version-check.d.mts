export function withVersionCheck(code: string, range: string): string
