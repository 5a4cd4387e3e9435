import { once } from 'node:events';
import { access, constants, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { messageOf } from '../domain/errors.ts';
import { codeOf, type Disk, foldersWritten, isFull, nearestFolder, readDisk } from '../files/disk.ts';
import { type FileStore, writeWhole } from '../files/file-store.ts';
import { checkSmtpServer } from '../notifications/mail.ts';
import { packageRoot } from '../package-root.ts';
import { readSchedulesFile } from '../sources/schedules/schedules-file.ts';
import { namedVariables, type Variables } from '../sources/schedules/source.ts';
import { type Finding, failed, ok, sentenceOf, warning } from './check.ts';

/** Compares with the `engines` of package.json, which installers only warn about. */
export async function checkNode(version: string = process.versions.node): Promise<Finding[]> {
  const { engines } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const least = engines.node.replace(/^>=/, '');
  const found = `Node.js ${version}`;
  return [
    isAtLeast(version, least)
      ? ok('node', found)
      : failed('node', found, `Install Node.js ${least} or newer.`),
  ];
}

export function isAtLeast(version: string, least: string): boolean {
  return version.localeCompare(least, 'en', { numeric: true }) >= 0;
}

const loopback = new Set(['127.0.0.1', '[::1]', '::1', 'localhost']);

/** Checks what links to jobs and files begin with. Messages have no request that could say it. */
export async function checkPublicUrl(
  config: Pick<Config, 'publicUrl' | 'host' | 'port'>,
): Promise<Finding[]> {
  const { publicUrl, host, port } = config;
  const check = 'public url';
  const toAddress = 'Set PUBLIC_URL to the address that callers reach the server by.';
  if (publicUrl === null) {
    if (loopback.has(host)) return [ok(check, `not set; the server listens on ${host} only`)];
    const found = `PUBLIC_URL is not set and the server listens on ${host}: links in messages would lead to http://${host}:${port}`;
    return [warning(check, found, toAddress)];
  }
  const { protocol, hostname, username, password, search, hash, origin } = new URL(publicUrl);
  if ([username, password, search, hash].some((part) => part !== '')) {
    const found = 'PUBLIC_URL holds a login, a question mark or a #, which links cannot bear';
    return [warning(check, found, 'Set it as in https://sluice.example.com.')];
  }
  if (loopback.has(hostname)) {
    if (loopback.has(host)) return [ok(check, origin)];
    return [warning(check, `${origin} is this machine only, and the server listens on ${host}`, toAddress)];
  }
  if (protocol !== 'http:') return [ok(check, origin)];
  const advice = 'Put a proxy with TLS in front, and set PUBLIC_URL to its https:// address.';
  return [warning(check, `${origin}: keys and links to files travel unencrypted`, advice)];
}

/** The file that the schedules are in, and the variables it names. Runs none of them. */
export async function checkSchedules(
  { schedulesFile }: Pick<Config, 'schedulesFile'>,
  variables: Variables,
): Promise<Finding[]> {
  const check = 'schedules';
  if (schedulesFile === null) return [ok(check, 'no file is set: only schedules of the API run')];
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

type Address = Pick<Config, 'host' | 'port'>;

export interface AddressFault {
  readonly isTaken: boolean;
  /** Two sentences: what is wrong, and what to do. */
  readonly advice: string;
}

/** Returns what keeps a server from listening there now, or null. */
export async function findAddressFault(address: Address): Promise<AddressFault | null> {
  const probe = createServer();
  try {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, 'listening');
  } catch (error) {
    return { isTaken: codeOf(error) === 'EADDRINUSE', advice: explainAddress(address, error) };
  }
  probe.close();
  await once(probe, 'close');
  return null;
}

function explainAddress({ host, port }: Address, error: unknown): string {
  const hosts =
    'Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.';
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `Port ${port} is taken by another program. Choose another with --port (PORT); 0 takes any free one.`;
    case 'EACCES':
    case 'EPERM':
      return `This user may not listen on port ${port}: those below 1024 take special rights. Choose another with --port (PORT), such as 8080, and let a proxy pass port ${port} on.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine. ${hosts}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address, and no name that is known here. ${hosts}`;
    default:
      return `Nobody can listen on ${host}, port ${port}: ${messageOf(error)}`;
  }
}

/** Tells whether the server can listen where it is to, or does already. */
export async function checkPort(address: Address): Promise<Finding[]> {
  const check = 'port';
  const where = `${address.host}, port ${address.port}`;
  const fault = await findAddressFault(address);
  if (fault === null) return [ok(check, address.port === 0 ? 'any free one' : `${where} is free`)];
  if (fault.isTaken && (await isSluice(address))) return [ok(check, `sluice listens on ${where}`)];
  const found = fault.isTaken ? `another program listens on ${where}` : `nobody can listen on ${where}`;
  return [failed(check, found, fault.advice)];
}

/** Whoever listens there may be anybody: it is asked once, and not for long. */
async function isSluice({ host, port }: Address): Promise<boolean> {
  const reached =
    { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host);
  try {
    const answer = await fetch(`http://${reached}:${port}/health/live`, {
      redirect: 'error',
      signal: AbortSignal.timeout(2_000),
    });
    return (await answer.text()) === '{"status":"live"}';
  } catch {
    return false;
  }
}

const GiB = 2 ** 30;
const MiB = 2 ** 20;
const leastBytes = GiB;
const leastShare = 0.1;

/** Space on the disk of every folder that we write to; of those on one disk the first speaks for all. */
export async function checkDisk(
  config: Pick<Config, 'dataDir' | 'filesDir' | 'storage'>,
): Promise<Finding[]> {
  const findings = new Map<number | string, Finding>();
  for (const folder of foldersWritten(config)) {
    const check = `disk of ${folder}`;
    try {
      const disk = await readDisk(folder);
      if (!findings.has(disk.device)) findings.set(disk.device, judgeSpace(check, disk));
    } catch (error) {
      const advice = 'Is the disk mounted, and may this user look at it?';
      findings.set(folder, failed(check, sentenceOf(error), advice));
    }
  }
  return [...findings.values()];
}

export function judgeSpace(check: string, disk: Pick<Disk, 'freeBytes' | 'allBytes'>): Finding {
  const { freeBytes, allBytes } = disk;
  const share = allBytes === 0 ? 0 : freeBytes / allBytes;
  const left = freeBytes < GiB ? `${Math.floor(freeBytes / MiB)} MiB` : `${(freeBytes / GiB).toFixed(1)} GiB`;
  const found = `${left} free, ${Math.floor(share * 100)} % of ${(allBytes / GiB).toFixed(1)} GiB`;
  const advice =
    'Make room: shorten FILE_RETENTION_DAYS or EXPORT_RETENTION_DAYS and run `sluice prune`, or get a larger disk.';
  if (isFull(disk)) return failed(check, `the disk is full: ${found}`, advice);
  if (freeBytes >= leastBytes && share >= leastShare) return ok(check, found);
  return warning(check, found, advice);
}

/** Tells whether this user may write into a folder, or create it where it is missing. Creates nothing. */
export async function judgeFolder(check: string, wanted: string, setting: string): Promise<Finding> {
  const { folder } = await nearestFolder(wanted);
  if (!(await stat(folder)).isDirectory()) {
    return failed(check, `${folder} is no folder`, `Move it away, or choose another ${setting}.`);
  }
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const advice = `Make ${folder} writable for the user that runs sluice, or choose another ${setting}.`;
    return failed(check, `this user may not write into ${folder}`, advice);
  }
  return ok(
    check,
    folder === wanted ? `${wanted} is writable` : `${wanted} is not there yet, and can be made`,
  );
}

const sample = Buffer.from('sluice doctor: written, read in part and in whole, and removed\n'.repeat(64));
const [start, end] = [1_000, 1_100];

/** Does with one small file all that a load or an export does with large ones. Leaves nothing behind. */
export async function checkStorage(files: FileStore): Promise<Finding[]> {
  const check = 'storage';
  const startedAt = performance.now();
  await files.check();
  const ref = await writeWhole(await files.create(), [sample]);
  try {
    const part = await files.readRange(ref, start, end);
    const whole = Buffer.concat(await files.open(ref).toArray());
    if (!part.equals(sample.subarray(start, end)) || !whole.equals(sample)) {
      const advice = 'What is stored must come back unchanged: look for a proxy or a gateway in between.';
      return [failed(check, 'a file came back other than it was written', advice)];
    }
  } finally {
    await files.remove(ref);
  }
  const ms = Math.round(performance.now() - startedAt);
  return [ok(check, `a file was written, read in part and in whole, and removed, in ${ms} ms`)];
}
