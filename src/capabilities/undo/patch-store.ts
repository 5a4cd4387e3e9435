/** The lines of a reverse patch, in a temporary table of the session. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';
import { findValue, type Transaction } from '../../postgres/database.ts';

export interface PatchScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
}

export type PatchContent = Readonly<Record<string, number>>;

/** Copies the lines of a chunk into the table. Returns the number of lines by kind. */
export async function copyPatch({ client, db }: Transaction, lines: Buffer): Promise<PatchContent> {
  await client.query(`
    create temporary table if not exists patch_lines (number bigint generated always as identity, line jsonb not null)
    on commit delete rows`);
  // Neither character can occur in JSON, so COPY reads each line as one cell.
  const options = "format csv, quote E'\\x01', delimiter E'\\x02'";
  await pipeline(
    Readable.from([lines], { objectMode: false }),
    client.query(copyFrom(`copy patch_lines (line) from stdin (${options})`)),
  );
  const content = await findValue<PatchContent>(db)`
    select coalesce(json_object_agg(does, lines), '{}') as content
    from (
      select
        line ->> 'entity' || case
          when line ? 'kept' then ' kept'
          when line ? 'removed' then ' removed'
          when line ? 'position' then ' restored'
          else ' back'
        end as does,
        count(*) as lines
      from patch_lines
      group by 1
    ) counted`;
  return content ?? {};
}

/** SQL for a member of the line `l`, as text. */
export const text = (name: string) => sql`l.line ->> ${sql.lit(name)}`;

export const linesOf = (
  entity: Entity | 'events',
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`(
  select * from patch_lines l where ${text('entity')} = ${entity} and ${condition} order by number
) l`;
