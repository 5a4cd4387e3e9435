import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { SOURCE_CONNECT_MS } from '../../domain/limits.ts';
import { ConnectionMonitor } from '../../postgres/connection-monitor.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { millisecondsOf, type SourceDefinition } from './schedules-schema.ts';
import { fillIn, type OpenItem, readItem, type Source, SourceFailure, type Variables } from './source.ts';

type Definition = SourceDefinition<'postgres'>;

/** Opens the result of a query as CSV. The query is the operator's; it runs in a read-only transaction. */
export function openPostgres(definition: Definition, variables: Variables): Source {
  return {
    list: async () => [
      {
        key: 'query',
        filename: 'query.csv',
        version: null,
        open: (_, signal) => openQuery(definition, variables, signal),
      },
    ],
  };
}

async function openQuery(
  { url, query, timeout }: Definition,
  variables: Variables,
  signal: AbortSignal,
): Promise<OpenItem> {
  const connectionString = readConnection(fillIn(url, variables));
  const client = new pg.Client({
    connectionString,
    application_name: 'sluice schedule',
    connectionTimeoutMillis: SOURCE_CONNECT_MS,
  });
  const monitor = new ConnectionMonitor({ url: connectionString, log: null });
  // A lost connection is also an error of the stream or statement.
  client.on('error', () => undefined);
  const cut = (): void => void client.end().catch(() => undefined);
  signal.addEventListener('abort', cut);
  const close = async (): Promise<void> => {
    signal.removeEventListener('abort', cut);
    // A statement under way would be waited for: the connection is cut, and the server ends it.
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    monitor.close();
  };
  try {
    await client.connect();
    // A server that knows no such question is not asked.
    await monitor.watch(client).catch(() => undefined);
    await client.query('begin isolation level repeatable read read only');
    await client.query(
      `select set_config('statement_timeout', $1, true), set_config('datestyle', 'ISO', true),
        set_config('client_encoding', 'UTF8', true)`,
      [String(millisecondsOf(timeout))],
    );
    // Refused unless it is one whole statement: no bracket of its own may end the one that it is put into.
    await client.query(`prepare sluice_schedule as ${withoutEnd(query)}`);
    const stream = client.query(copyTo(`copy (${withoutEnd(query)}\n) to stdout (format csv, header)`));
    return {
      bytes: readItem(stream, asFailure),
      version: null,
      hints: { format: 'csv' },
      mayBeEmpty: true,
      close,
    };
  } catch (error) {
    await close();
    throw signal.aborted ? signal.reason : asFailure(error);
  }
}

function readConnection(text: string): string {
  if (URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol)) return text;
  throw new SourceFailure('invalid_url', 'the connection string does not begin with postgres://');
}

/** A line comment at the end would take our bracket along; hence the line feed behind it. */
function withoutEnd(query: string): string {
  return query.trim().replace(/;$/, '');
}

/** The server's own words: they name users and tables, and no password. */
function asFailure(error: unknown): SourceFailure {
  if (error instanceof SourceFailure) return error;
  const message = error instanceof Error ? error.message : String(error);
  // 57014: it took too long. 25…: it would write.
  const { code = '' } = error as { code?: string };
  const passing = isTransient(error) && !/^(57014|25)/.test(code);
  return new SourceFailure('query_failed', `the query failed: ${message}`, { passing, cause: error });
}
