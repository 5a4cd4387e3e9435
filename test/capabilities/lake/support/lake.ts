import { icebergRead } from 'icebird';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { listData } from '../../../../src/capabilities/lake/file-store.ts';
import { type LakeGroup, readGroups } from '../../../../src/capabilities/lake/read-events.ts';
import { columnsOf, everything } from '../../../../src/domain/export.ts';
import { checkRef, type FileRef, type FileStore } from '../../../../src/files/file-store.ts';
import { createDatabase, type Database } from '../../../../src/postgres/database.ts';
import {
  insertEvents,
  instantBetween,
  monthsAgo,
  type StoredEvent,
} from '../../../support/oracles/retention.ts';
import type { TestSystem } from '../../../support/servers/system.ts';

export interface LakeRow {
  readonly event_id: string;
  readonly user_id: string;
}

/**
 * Converts a row to the form in which icebird returns it: times in milliseconds, and strings
 * without a leading byte order mark.
 */
export function comparable({
  event_id,
  inserted_at,
  metadata,
  company_id = null,
  ...row
}: Record<string, unknown>): LakeRow {
  const properties: unknown = typeof metadata === 'string' ? JSON.parse(metadata) : metadata;
  const at = new Date(inserted_at as string | Date).toISOString();
  const id = String(event_id).replace('\uFEFF', '');
  return { ...row, event_id: id, company_id, inserted_at: at, metadata: properties } as unknown as LakeRow;
}

/**
 * Returns all events of an environment: in the database, on their way to the lake, and in archives.
 */
export async function readEverywhere(
  { db, files }: { readonly db: Database; readonly files: FileStore },
  environmentId: number,
): Promise<LakeRow[]> {
  const { rows: tables } = await sql<{ name: string }>`
    select 'events' as name
    union all
    select table_name from event_retirements where state = 'retired' and archives`.execute(db);
  const events: LakeRow[] = [];
  for (const { name } of tables) {
    const { rows } = await sql<Record<string, unknown>>`
      select event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata
      from ${sql.table(name)}
      where environment_id = ${environmentId}`.execute(db);
    events.push(...rows.map(comparable));
  }
  const data = await listData(db, environmentId);
  for (const file of data.filter(({ isHot }) => !isHot))
    for await (const group of readGroups(files, file)) events.push(...(await rowsOf(group)));
  return inOrder(events);
}

async function rowsOf(group: LakeGroup): Promise<LakeRow[]> {
  const names = columnsOf('events', everything).map(({ name }) => name);
  const columns = await Promise.all(names.map((name) => group.column(name)));
  return Array.from({ length: group.rows }, (_, row) => {
    const event = Object.fromEntries(names.map((name, at) => [name, columns[at]?.[row]]));
    return comparable({ ...event, inserted_at: new Date(Number(event['inserted_at']) / 1_000) });
  });
}

function inOrder(rows: readonly LakeRow[]): LakeRow[] {
  return rows.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1));
}

/**
 * Reads the events of an environment with icebird, an independent Iceberg reader. icebird requests
 * `s3://` addresses over HTTP, which this function serves from the file store.
 */
export async function readLake(
  { db, files }: { readonly db: Database; readonly files: FileStore },
  environment: string,
): Promise<LakeRow[]> {
  const { rows } = await sql<{ at: string }>`
    select metadata_location as at
    from iceberg_tables
    where table_namespace = ${environment} and table_name = 'events'`.execute(db);
  const [, tableUrl, metadataFileName] = /^(.*)\/metadata\/([^/]*)$/.exec(rows[0]?.at ?? '') ?? [];
  if (tableUrl === undefined || metadataFileName === undefined) throw new Error('there is no such table');
  const fetchOfProcess = globalThis.fetch;
  globalThis.fetch = async (address, init) => {
    const ref = checkRef(/lake\/.*$/.exec(decodeURIComponent(String(address)))?.[0] ?? '');
    const size = (await files.size(ref)) ?? 0;
    if (init?.method === 'HEAD') return new Response(null, { headers: { 'Content-Length': String(size) } });
    const [, from, to] = /bytes=(\d+)-(\d*)/.exec(new Headers(init?.headers).get('range') ?? '') ?? [];
    const range = [Number(from ?? 0), to ? Number(to) + 1 : size] as const;
    const status = from === undefined ? 200 : 206;
    return new Response(new Uint8Array(await files.readRange(ref, ...range)), { status });
  };
  try {
    const rows = (await icebergRead({ tableUrl, metadataFileName })) as Record<string, unknown>[];
    return inOrder(rows.map(comparable));
  } finally {
    globalThis.fetch = fetchOfProcess;
  }
}

/** Expects that an independent reader finds exactly the events of the test's environment. */
export async function expectSame(t: TestSystem): Promise<readonly LakeRow[]> {
  const rows = await readLake(t.system, 'default');
  expect(rows).toEqual(await readEverywhere(t.system, t.environment.environmentId));
  return rows;
}

export function instantIn(ago: number, serial: number): string {
  const end = Math.min(monthsAgo(ago - 1), Date.now());
  return instantBetween(monthsAgo(ago), end, (serial * 0.618) % 1);
}

let serial = 0;

export async function addEvents(
  t: TestSystem,
  ago: readonly number[],
  count: number,
  fields: Partial<StoredEvent> = {},
): Promise<StoredEvent[]> {
  const events = ago.flatMap((months) =>
    Array.from({ length: count }, () => ({
      environment: t.environment.environmentId,
      id: `e${++serial}`,
      name: serial % 3 === 0 ? 'signup' : 'seen',
      user: `u${serial % 10}`,
      company: serial % 2 === 0 ? `c${serial % 4}` : null,
      named: serial % 2 === 0,
      at: instantIn(months, serial),
      metadata: { n: serial, text: 'ä"\n' },
      ...fields,
    })),
  );
  await insertEvents(t, events);
  return events;
}

/**
 * Expects that the folder of the lake contains only the files of its snapshots and `otherFiles`.
 */
export async function expectNamedFiles(
  t: Pick<TestSystem, 'system' | 'storedFiles'>,
  otherFiles: readonly FileRef[] = [],
): Promise<void> {
  const files = (await t.storedFiles()).flatMap((name) => /lake\/.*$/.exec(name)?.[0] ?? []);
  const { rows } = await sql<{ ref: string; state: string }>`
    select file_ref as ref, state from lake_files`.execute(t.system.db);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(['stored']));
  expect(files.sort()).toEqual([...rows.map(({ ref }) => ref), ...otherFiles].sort());
}

/** Returns all files below `lake/` that contain the text, even those that no table lists. */
export async function filesWith(
  t: Pick<TestSystem, 'system' | 'storedFiles'>,
  text: string,
): Promise<FileRef[]> {
  const refs: FileRef[] = [];
  for (const name of await t.storedFiles()) {
    const ref = /lake\/.*$/.exec(name)?.[0] as FileRef | undefined;
    if (ref === undefined) continue;
    const bytes = (await t.system.files.size(ref)) ?? 0;
    if ((await t.system.files.readRange(ref, 0, bytes)).includes(text)) refs.push(ref);
  }
  return refs;
}

/** Returns a system that loses access to its database and its files at step number `dieAt`. */
export function mortalSystem(t: TestSystem, dieAt: number) {
  let steps = 0;
  const step = (): void => {
    if (++steps >= dieAt) throw new Error('the process has died');
  };
  const pool = new Proxy(t.system.pool, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (name === 'connect' || name === 'query') step();
        return value.apply(target, args);
      };
    },
  });
  const store = t.system.files;
  const files: FileStore = {
    ...store,
    async createAs(ref) {
      step();
      const writer = await store.createAs(ref);
      const commit = async (): Promise<FileRef> => {
        step();
        const ref = await writer.commit();
        step();
        return ref;
      };
      return { ref: writer.ref, write: (bytes) => writer.write(bytes), commit, discard: async () => step() };
    },
    async remove(ref) {
      step();
      await store.remove(ref);
    },
  };
  const context = { ...t.system, pool, db: createDatabase(pool), files };
  return { context, isAlive: () => steps < dieAt };
}
