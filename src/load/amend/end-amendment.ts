import { defuse, undoDefuse } from '../../domain/formula.ts';
import { isRejectColumn } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import type { Database } from '../../postgres/database.ts';
import {
  concludeClaims,
  readAmendmentShapes,
  readRefusedAgain,
  refuseAgain,
} from '../../postgres/stores/amendments.ts';
import { RefusedCsv } from '../refused-csv.ts';
import { csvCell, withoutReason } from '../rejects-text.ts';

/** Refused records that are held at a time: each may have MAX_REJECT_RAW_BYTES. */
const heldAtATime = 100;

/**
 * Moves the counts of the parent when an amendment completes: what it accepted counts as amended; what it refused stays refused, with
 * the new reason and as it was sent now, and may be mended again. Nothing, of a load that amends nothing. Call it in the transaction that
 * completes the load.
 */
export async function endAmendment(db: Database, loadId: number): Promise<void> {
  const shapes = await readAmendmentShapes(db, loadId);
  if (shapes === null) return;
  const { parentId, header, parentHeader } = shapes;
  const reshape =
    header === null || parentHeader === null ? withoutReason : createReshaping(header, parentHeader);
  for (let after: number | null = 0; after !== null; ) {
    const refused = await readRefusedAgain(db, loadId, after, heldAtATime);
    if (refused.length > 0) {
      const sent = refused.map(({ record, raw }) => ({ record, raw: reshape(raw) }));
      await refuseAgain(db, loadId, sent);
    }
    after = refused.length < heldAtATime ? null : (refused.at(-1)?.record ?? null);
  }
  await concludeClaims(db, parentId, loadId);
}

/**
 * A record of a mended file as the parent's file would have it, by the names of the columns. Null where that cannot be told: then the
 * parent keeps what it has.
 */
function createReshaping(from: CsvHeader, to: CsvHeader): (raw: Buffer) => Buffer | null {
  const sent = new RefusedCsv(from);
  const kept = new RefusedCsv(to);
  const positions = to.columns.map((name) => (isRejectColumn(name) ? -1 : from.columns.indexOf(name)));
  const given = (text: string): string => {
    const meant = from.defused === 'undone' ? undoDefuse(text) : text;
    return to.defused === 'undone' ? defuse(meant) : meant;
  };
  return (raw) => {
    const cells = sent.split(raw);
    if (cells === null) return null;
    const texts = positions.map((at) => given(cells[at]?.text ?? ''));
    const record = Buffer.from(texts.map((text) => csvCell(text, to.delimiter)).join(to.delimiter));
    // In the dialect of the parent the same text may mean something else.
    const again = kept.split(record);
    return again !== null && texts.every((text, at) => again[at]?.text === text) ? record : null;
  };
}
