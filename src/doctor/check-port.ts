import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../config.ts';
import { sendRequest } from '../net/http-client.ts';
import { type Finding, failed, ok } from './check.ts';

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
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return { isTaken: code === 'EADDRINUSE', advice: explainAddress(code, address, error) };
  }
  probe.close();
  await once(probe, 'close');
  return null;
}

function explainAddress(code: string, { host, port }: Address, error: unknown): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken by another program. Choose another with --port (PORT); 0 takes any free one.`;
    case 'EACCES':
    case 'EPERM':
      return `This user may not listen on port ${port}: those below 1024 take special rights. Choose another with --port (PORT), such as 8080, and let a proxy pass port ${port} on.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine. Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address, and no name that is known here. Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.`;
    default:
      return `Nobody can listen on ${host}, port ${port}: ${error instanceof Error ? error.message : String(error)}`;
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

const answerMs = 2_000;
const longestAnswer = 1_000;

/** Whoever listens there may be anybody: little is read, and not for long. */
async function isSluice({ host, port }: Address): Promise<boolean> {
  const reached =
    { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host);
  try {
    const answer = await sendRequest(new URL(`http://${reached}:${port}/health/live`), {
      method: 'GET',
      headers: {},
      allowPrivate: true,
      connectTimeoutMs: answerMs,
      answerTimeoutMs: answerMs,
      signal: AbortSignal.timeout(answerMs),
    });
    try {
      let body = '';
      for await (const bytes of answer.body) {
        body += bytes.toString('utf8');
        if (body.length > longestAnswer) return false;
      }
      return body === '{"status":"live"}';
    } finally {
      await answer.close();
    }
  } catch {
    return false;
  }
}
