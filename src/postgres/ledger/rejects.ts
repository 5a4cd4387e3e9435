import type { ChunkRange } from '../../domain/chunk.ts';
import type { Reject } from '../../domain/reject.ts';
import type { Database } from '../database.ts';

const rowsPerStatement = 1_000;

/** Keeps refused records; call it inside the chunk's transaction. */
export async function insertRejects(db: Database, loadId: number, rejects: readonly Reject[]): Promise<void> {
  for (let at = 0; at < rejects.length; at += rowsPerStatement) {
    await db
      .insertInto('load_rejects')
      .values(
        rejects.slice(at, at + rowsPerStatement).map((reject) => ({
          load_id: loadId,
          row_number: reject.row,
          line_number: reject.line,
          byte_offset: reject.byteOffset,
          column_name: reject.column?.replaceAll('\0', '␀').toWellFormed() ?? null,
          error_code: reject.code,
          message: reject.message.replaceAll('\0', '␀').toWellFormed(),
          raw: Buffer.from(reject.raw),
        })),
      )
      .execute();
  }
}

/** Numbers of the chunk's rows that the database refused, though they had passed all checks. */
export async function readRefusedRows(
  db: Database,
  loadId: number,
  { firstRow, rowCount }: ChunkRange,
): Promise<ReadonlySet<number>> {
  const rows = await db
    .selectFrom('load_rejects')
    .select('row_number')
    .where('load_id', '=', loadId)
    .where('error_code', '=', 'refused_by_database')
    .where('row_number', '>=', firstRow)
    .where('row_number', '<', firstRow + rowCount)
    .execute();
  return new Set(rows.map((row) => row.row_number));
}
