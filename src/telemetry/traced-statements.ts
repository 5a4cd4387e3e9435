import type pg from 'pg';
import type { Span, Tracing } from './tracing.ts';

/**
 * Makes spans of the statements of a pool, where they are part of one: its queries go through a connection of ours, since those of a
 * pool that is exhausted begin in the context of whoever gives one back.
 */
export function traceStatements(pool: pg.Pool, tracing: Tracing): void {
  pool.on('connect', (client) => traceClient(client, tracing));
  const query = pool.query.bind(pool) as (...given: readonly unknown[]) => unknown;
  pool.query = ((...given: readonly unknown[]) => {
    if (typeof given.at(-1) === 'function' || tracing.active === null) return query(...given);
    return queryInContext(pool, given);
  }) as typeof pool.query;
}

async function queryInContext(pool: pg.Pool, given: readonly unknown[]): Promise<unknown> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    return await (client.query as (...all: readonly unknown[]) => Promise<unknown>)(...given);
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

function traceClient(client: pg.ClientBase, tracing: Tracing): void {
  const query = client.query.bind(client) as (...given: readonly unknown[]) => unknown;
  client.query = ((...given: readonly unknown[]) => {
    if (tracing.active === null || typeof given.at(-1) === 'function') return query(...given);
    const name = summaryOf(given[0]);
    const span = tracing.begin(name, {
      kind: 'client',
      attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name },
    });
    return ended(span, () => query(...given));
  }) as typeof client.query;
}

/** A promise, or the stream of a COPY. */
function ended(span: Span, begin: () => unknown): unknown {
  const onFailed = (error: unknown): void => {
    span.fail(error);
    span.end();
  };
  try {
    const result = begin();
    if (result instanceof Promise) {
      result.then(() => span.end(), onFailed);
    } else if (isStream(result)) {
      result.once('error', onFailed);
      for (const event of ['finish', 'end', 'close']) result.once(event, () => span.end());
    } else span.end();
    return result;
  } catch (error) {
    onFailed(error);
    throw error;
  }
}

function isStream(value: unknown): value is NodeJS.EventEmitter {
  return typeof value === 'object' && value !== null && 'once' in value && typeof value.once === 'function';
}

/** Of a text that is no statement of ours. */
const unknownStatement = 'statement';
const mostRead = 4_000;

/**
 * A statement's name, or what it does to which table. Never its text: COPY has no parameters, so the ids that an export asks for
 * stand in it.
 */
export function summaryOf(statement: unknown): string {
  if (typeof statement === 'string') return summaryOfText(statement);
  if (typeof statement !== 'object' || statement === null) return unknownStatement;
  const { name, text } = statement as { readonly name?: unknown; readonly text?: unknown };
  if (typeof name === 'string' && name !== '') return name;
  return typeof text === 'string' ? summaryOfText(text) : unknownStatement;
}

const verb = /^(?:\s|--[^\n]*\n)*(?:with\b[\s\S]*?\b(?=insert|update|delete|select))?\s*([a-z]+)/i;
const table = /\b(?:into|from|update|copy|join|table)\s+(?:only\s+)?((?:"?[a-z_]+"?\.)?"?[a-z_]+"?)/i;

/** Its text holds what the export is about. */
const exportText = /^\s*copy\s*\(/i;

function summaryOfText(text: string): string {
  if (exportText.test(text)) return 'COPY export';
  const head = text.slice(0, mostRead);
  const found = verb.exec(head)?.[1]?.toUpperCase();
  if (found === undefined) return unknownStatement;
  const target = table.exec(head)?.[1]?.replaceAll('"', '');
  return target === undefined ? found : `${found} ${target}`;
}
