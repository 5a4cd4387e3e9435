import { ensureDefaultEnvironment } from '../../access/environments.ts';
import type { Database } from '../../postgres/database.ts';
import { createApiKey, listApiKeys } from '../../postgres/stores/api-keys.ts';
import type { Terminal } from '../terminal.ts';

/**
 * Makes sure that the environment `default` exists and has had a key. Returns the key if it was made now: the only
 * time that it is known. An environment that `sluice import` made has none until a server first starts.
 */
export async function ensureFirstKey(db: Database): Promise<string | null> {
  const { environment, key } = await ensureDefaultEnvironment(db);
  if (key !== null) return key;
  // Revoked ones count: whoever revoked the last key does not want another one by surprise.
  if ((await listApiKeys(db, environment.environmentId)).length > 0) return null;
  return (await createApiKey(db, environment.environmentId, { label: 'first key' })).key;
}

/** On standard output, never in the log. */
export function announceKey(terminal: Terminal, key: string): void {
  terminal.print('');
  terminal.print('An API key for the environment `default` was made. It is shown only this once:');
  terminal.print('');
  terminal.print(`    ${terminal.style('bold', key)}`);
  terminal.print('');
  terminal.print(`Send it with every request:  Authorization: Token ${key.slice(0, 8)}…`);
  terminal.print('');
}
