import type { Config } from '../config.ts';
import { type Finding, ok, warning } from './finding.ts';

const loopback = new Set(['127.0.0.1', '[::1]', '::1', 'localhost']);

/** What links to jobs and files begin with. In messages there is no request that could say it. */
export async function checkPublicUrl({
  publicUrl,
  host,
  port,
}: Pick<Config, 'publicUrl' | 'host' | 'port'>): Promise<Finding[]> {
  const check = 'public url';
  if (publicUrl === null) {
    if (loopback.has(host)) return [ok(check, `not set; the server listens on ${host} only`)];
    const found = `PUBLIC_URL is not set and the server listens on ${host}: links in messages would lead to http://${host}:${port}`;
    return [warning(check, found, 'Set PUBLIC_URL to the address that callers reach the server by.')];
  }
  const { protocol, hostname, username, password, search, hash, origin } = new URL(publicUrl);
  if (username !== '' || password !== '' || search !== '' || hash !== '') {
    const found = 'PUBLIC_URL holds a login, a question mark or a #, which links cannot bear';
    return [warning(check, found, 'Set it as in https://sluice.example.com.')];
  }
  if (loopback.has(hostname) && !loopback.has(host)) {
    const found = `${origin} is this machine only, and the server listens on ${host}`;
    return [warning(check, found, 'Set PUBLIC_URL to the address that callers reach the server by.')];
  }
  if (protocol === 'http:' && !loopback.has(hostname)) {
    const found = `${origin}: keys and links to files travel unencrypted`;
    return [
      warning(check, found, 'Put a proxy with TLS in front, and set PUBLIC_URL to its https:// address.'),
    ];
  }
  return [ok(check, origin)];
}
