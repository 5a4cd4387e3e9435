import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';

/**
 * The rows of one batch on their way into a profile table, in the session's temporary table:
 * each key once; `company` null leaves the company alone and '' removes it; flags as in RowBuffer.
 * Not in `Database`'s schema because no migration makes it.
 */
export interface Incoming {
  readonly key: string;
  readonly properties: string;
  readonly company: string | null;
  readonly flags: number;
}

export const incomingTable = {
  users: 'incoming_users',
  companies: 'incoming_companies',
} as const satisfies Record<Entity, string>;

/** Temporary tables are the session's: made by its first batch, emptied at every commit. */
export async function prepareIncoming(client: pg.PoolClient): Promise<void> {
  await client.query(
    Object.values(incomingTable)
      .map(
        (table) => `
          create temporary table if not exists ${table} (
            key text collate "C" not null,
            properties jsonb not null,
            company text collate "C",
            flags smallint not null
          ) on commit delete rows;`,
      )
      .join(''),
  );
}

/** Sends COPY text (see RowBuffer) into the session's table for `entity`. */
export async function copyIncoming(client: pg.PoolClient, entity: Entity, text: Buffer): Promise<void> {
  const sink = client.query(
    copyFrom(`copy ${incomingTable[entity]} (key, properties, company, flags) from stdin`),
  );
  await pipeline(Readable.from([text], { objectMode: false }), sink);
}
