import { icebergRead } from 'icebird';
import { sql } from 'kysely';
import type { FileStore } from '../../src/files/file-store.ts';
import { checkRef } from '../../src/files/file-store.ts';
import type { Database } from '../../src/postgres/database.ts';

/** An event of the lake, as an export has it in NDJSON. */
export interface LakeRow {
  readonly event_id: string;
  readonly user_id: string;
}

/** icebird reads times as dates, to the millisecond, and leaves out a mark at the beginning of a text. */
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
 * Reads the events of an environment with icebird, a reader of Iceberg that is none of ours, from where the catalog says. It asks for
 * `s3://` addresses by HTTP; here the file store answers.
 */
export async function readLake(
  { db, files }: { readonly db: Database; readonly files: FileStore },
  environment: string,
  table = 'events',
): Promise<LakeRow[]> {
  const { rows } = await sql<{ at: string }>`
    select metadata_location as at
    from iceberg_tables
    where table_namespace = ${environment} and table_name = ${table}`.execute(db);
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
    const found = await icebergRead({ tableUrl, metadataFileName });
    return found.map((row) => comparable(row as Record<string, unknown>));
  } finally {
    globalThis.fetch = fetchOfProcess;
  }
}
