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
