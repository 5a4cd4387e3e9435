import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { checkSmtpServer } from '../notifications/mail-transport.ts';
import { packageRoot } from '../package-root.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import { namedVariables, type Variables } from '../sources/schedules/source.ts';
import { type Finding, failed, ok, warning } from './check.ts';

/** Compares with the `engines` of package.json, which installers only warn about. */
export async function checkNode(version: string = process.versions.node): Promise<Finding[]> {
  const { engines } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const least = engines.node.replace(/^>=/, '');
  if (isAtLeast(version, least)) return [ok('node', `Node.js ${version}`)];
  return [failed('node', `Node.js ${version}`, `Install Node.js ${least} or newer.`)];
}

/** Tells whether a dotted version is another one or newer. */
export function isAtLeast(version: string, least: string): boolean {
  const [given, wanted] = [version, least].map((text) =>
    text.split('.').map((part) => Number.parseInt(part, 10) || 0),
  );
  for (const [at, part] of (wanted ?? []).entries()) {
    const own = given?.[at] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}

const loopback = new Set(['127.0.0.1', '[::1]', '::1', 'localhost']);

/** Checks what links to jobs and files begin with. Messages have no request that could say it. */
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

/** The file that the schedules are in, and the variables it names. Runs none of them. */
export async function checkSchedules(
  { schedulesFile }: Pick<Config, 'schedulesFile'>,
  variables: Variables,
): Promise<Finding[]> {
  const check = 'schedules';
  if (schedulesFile === null) return [ok(check, 'not set: nothing runs by the clock')];
  const bytes = await readFile(schedulesFile);
  const { value, problems } = readSchedulesFile(bytes);
  if (value === null) {
    const [first] = problems;
    const where = first === undefined ? '' : `:${first.line}:${first.column}: ${first.message}`;
    const advice =
      'Mend it; `sluice schedules check` tells all that is wrong. Until then nothing starts with it.';
    return [failed(check, `${schedulesFile}${where}`, advice)];
  }
  const missing = namedVariables(bytes.toString('utf8')).filter((name) => !variables[name]);
  if (missing.length > 0) {
    const advice =
      'Set them for the workers, and for this command if it is to see them; runs that need them fail.';
    return [warning(check, `not set here: ${missing.slice(0, 10).join(', ')}`, advice)];
  }
  return [ok(check, `${value.length} in ${schedulesFile}`)];
}

/** Connects and logs in, and sends nothing. */
export async function checkSmtp({
  smtpUrl,
  outboxDir,
}: Pick<Config, 'smtpUrl' | 'outboxDir'>): Promise<Finding[]> {
  const check = 'smtp';
  if (smtpUrl === null) return [ok(check, `not set: messages are written to ${outboxDir}`)];
  await checkSmtpServer(smtpUrl);
  const { username, host } = new URL(smtpUrl);
  return [ok(check, `${host} answers${username === '' ? '' : ' and takes the login'}`)];
}
