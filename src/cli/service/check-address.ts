import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../../config.ts';
import { findDatabaseUrl } from '../../postgres/provide.ts';
import { CommandFailed } from '../exit-codes.ts';

type Address = Pick<Config, 'host' | 'port'>;

/**
 * Throws `CommandFailed` if nobody can listen there now: before anything else is started or made, rather than after.
 * Where another sluice runs on the same data, that is the better thing to say, and is left to whoever opens the data.
 */
export async function checkAddress(
  address: Address & Pick<Config, 'databaseUrl' | 'dataDir'>,
  ownsData: boolean,
): Promise<void> {
  if (ownsData && address.databaseUrl === null && (await findDatabaseUrl(address)) !== undefined) return;
  const probe = createServer();
  try {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new CommandFailed(explain(code, address, error));
  }
  probe.close();
  await once(probe, 'close');
}

function explain(code: string, { host, port }: Address, error: unknown): string {
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
