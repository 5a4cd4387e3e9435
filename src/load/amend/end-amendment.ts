import { isDeepStrictEqual } from 'node:util';
import { defuse, undoDefuse } from '../../domain/formula.ts';
import { isRejectColumn, rejectRawKey } from '../../domain/reject.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { isObject } from '../../mapping/json-object.ts';
import { parseJsonText } from '../../mapping/json-text.ts';
import type { Database } from '../../postgres/database.ts';
import {
  concludeClaims,
  readAmendmentShapes,
  readRefusedAgain,
  refuseAgain,
  releaseRecords,
} from '../../postgres/stores/amendments.ts';
import { RefusedCsv } from '../refused-csv.ts';
import { csvCell, withoutReason } from '../rejects-text.ts';

/** Refused records that are held at a time: each may have MAX_REJECT_RAW_BYTES. */
const heldAtATime = 100;

/**
 * Moves the counts of the parent when an amendment completes: what it accepted counts as amended; what it refused stays refused, with
 * the new reason and as it was sent now, and may be mended again; what was sent back as it came stays as it was. Nothing, of a load that amends nothing. Call it in the transaction that
 * completes the load.
 */
export async function endAmendment(db: Database, loadId: number): Promise<void> {
  const shapes = await readAmendmentShapes(db, loadId);
  if (shapes === null) return;
  const { parentId, header, parentHeader } = shapes;
  const isUnmended = header === null ? isUnmendedJson : createUnmendedCsv(header);
  const reshape =
    header === null || parentHeader === null ? withoutReason : createReshaping(header, parentHeader);
  for (let after: number | null = 0; after !== null; ) {
    const refused = await readRefusedAgain(db, loadId, after, heldAtATime);
    const unmended = refused.filter(({ raw }) => isUnmended(raw));
    const sent = refused.filter((each) => !unmended.includes(each));
    if (unmended.length > 0) await releaseRecords(db, loadId, unmended);
    if (sent.length > 0)
      await refuseAgain(
        db,
        loadId,
        sent.map(({ record, raw }) => ({ record, raw: reshape(raw) })),
      );
    after = refused.length < heldAtATime ? null : (refused.at(-1)?.record ?? null);
  }
  await concludeClaims(db, parentId, loadId);
}

/** Tells which lines of a CSV come back as downloaded, for records whose cells cannot be told apart: the text, and nothing filled in. */
function createUnmendedCsv(header: CsvHeader): (raw: Buffer) => boolean {
  const records = new RefusedCsv(header);
  const own = [...header.columns.keys()].filter((at) => !isRejectColumn(header.columns[at] ?? ''));
  const rawAt = header.columns.indexOf(rejectRawKey);
  return (raw) => {
    const cells = rawAt === -1 ? null : records.split(raw);
    return cells !== null && cells[rawAt]?.text !== '' && own.every((at) => cells[at]?.text === '');
  };
}

/** Tells whether a line of NDJSON comes back as downloaded, for a record that is no object. */
function isUnmendedJson(raw: Buffer): boolean {
  if (!raw.includes(rejectRawKey)) return false;
  const parsed = parseJsonText(raw.toString('utf8'));
  if ('code' in parsed || !isObject(parsed.value)) return false;
  const keys = Object.keys(parsed.value);
  return keys.includes(rejectRawKey) && keys.every(isRejectColumn);
}

/** Edited records are stored in the dialect of the parent's file, and kept as they are even if their cells cannot be told apart. */
function isSameShape(from: CsvHeader, to: CsvHeader): boolean {
  return isDeepStrictEqual({ ...from, defused: null }, { ...to, defused: null });
}

/**
 * A record of a mended file as the parent's file would have it, by the names of the columns. Null where that cannot be told: then the
 * parent keeps what it has.
 */
function createReshaping(from: CsvHeader, to: CsvHeader): (raw: Buffer) => Buffer | null {
  if (isSameShape(from, to)) return (raw) => raw;
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
