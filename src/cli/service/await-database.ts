import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Config } from '../../config.ts';
import { Interrupted } from '../../domain/errors.ts';
import { findDatabaseUrl } from '../../postgres/provide.ts';
import { certificateErrors } from '../certificate-errors.ts';
import { CommandFailed } from '../exit-codes.ts';

/** How long a process that needs the database waits for it to come up. */
const patienceMs = 60_000;
const pollMs = 250;
const connectTimeoutMs = 5_000;

/** What waiting does not mend: password, user, database name; a certificate that is not to be trusted. */
const hopeless = new Set(['28P01', '28000', '3D000', ...certificateErrors]);

export interface AwaitOptions {
  readonly signal: AbortSignal;
  /** Called once if it is not there at once, with a sentence that says so. */
  readonly onWait: (sentence: string) => void;
}

/**
 * Waits until the database answers; returns its URL. The database is DATABASE_URL, or the embedded server that
 * another process runs on the data directory.
 */
export async function awaitDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { signal, onWait }: AwaitOptions,
): Promise<string> {
  const deadline = performance.now() + patienceMs;
  let told = false;
  for (;;) {
    const answer = config.databaseUrl === null ? await findEmbedded(config) : await knock(config.databaseUrl);
    if (answer.url !== null) return answer.url;
    if (signal.aborted) throw new Interrupted('stopped while waiting for the database');
    if (performance.now() > deadline)
      throw new CommandFailed(`${answer.sentence} Gave up after ${patienceMs / 1000} s.`);
    if (!told) onWait(answer.sentence);
    told = true;
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

type Answer = { readonly url: string } | { readonly url: null; readonly sentence: string };

async function findEmbedded(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Answer> {
  const url = await findDatabaseUrl(config);
  if (url !== undefined) return { url };
  const sentence = `No database runs on ${config.dataDir}. Run \`sluice start\` there, or set DATABASE_URL.`;
  return { url: null, sentence };
}

async function knock(url: string): Promise<Answer> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return { url };
  } catch (error) {
    if (error instanceof Error && 'code' in error && hopeless.has(String(error.code))) throw error;
    const { hostname, port } = new URL(url);
    return {
      url: null,
      sentence: `The database at ${hostname}:${port || '5432'} does not answer. Is it running?`,
    };
  } finally {
    await client.end().catch(() => undefined);
  }
}
