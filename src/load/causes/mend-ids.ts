import { inputError } from '../../domain/errors.ts';
import { MAX_MEND_ID_CHARS, MAX_REJECT_RAW_BYTES, MAX_REPLACEMENT_CHARS } from '../../domain/limits.ts';
import type { LoadOptions } from '../../domain/load.ts';
import { readCauseId, writeCauseId } from '../../domain/reject.ts';
import { hasPersonalRules } from '../../domain/rules.ts';
import type { Database } from '../../postgres/database.ts';
import { readRules } from '../../postgres/stores/rules.ts';
import { isPersonalProperty } from '../../rules/compile-rules.ts';
import type { RefusedCsv } from '../rejects-text.ts';
import { type Mend, mends } from './mends.ts';

/**
 * A mend and the cause that it is for, null for all of them: a proposal, or a replacement.
 * @throws InputError `invalid_field`.
 */
export function readMendId(id: string): { readonly cause: number | null; readonly mend: Mend } {
  const [scope = ''] = id.split('-', 1);
  const name = id.slice(scope.length + 1);
  const cause = readCauseId(scope);
  const replacement = cause !== null || scope === allCauses ? readReplacement(name) : null;
  const mend = replacement ?? (cause === null ? null : mends.find((each) => each.name === name));
  if (mend != null) return { cause, mend };
  const message = 'There is no such proposal; ids come with the causes of the job';
  throw inputError('invalid_field', message, id.slice(0, 80));
}

/**
 * Checks the mends that a load or a mapping keeps. A replacement would be kept with its texts, which may be personal.
 * @throws InputError `invalid_field`.
 */
export async function requireKeepable(
  db: Database,
  environmentId: number,
  { map, preset, source }: Pick<LoadOptions, 'map' | 'preset' | 'source'>,
): Promise<void> {
  const columns = (source.mend ?? []).flatMap((id) => readMendId(id).mend.column ?? []);
  const rules = columns.length === 0 ? null : await readRules(db, environmentId);
  if (rules === null) return;
  const { document } = rules;
  // A map may number its columns, and have blanks around their names.
  const ownOf = (column: string): string => {
    const isMeant = (theirs: string) => theirs === column.trim() || `column_${theirs}` === column;
    return Object.entries(map).find(([theirs]) => isMeant(theirs.trim()))?.[1] ?? column;
  };
  const personal = columns.find((column) =>
    preset === null ? isPersonalProperty(document, ownOf(column)) : hasPersonalRules(document),
  );
  if (personal === undefined) return;
  const message =
    'values of this column are personal, and a replacement that is kept has them in clear; apply it to one job, without keeping it';
  throw inputError('invalid_field', message, `column: ${personal.slice(0, 80)}`);
}

/*
 * A replacement puts one text for another in a column of refused records: a mend that a person thought of. It is counted before it is
 * applied, and its id holds all of it, so that it is applied as any proposal is.
 */

export interface Replacement {
  /** By its name in the header. */
  readonly column: string;
  /** Empty: cells with nothing in them. */
  readonly find: string;
  /** `{row}` in it stands for the number of the record. */
  readonly by: string;
  /** The only cause of the records; null: any. */
  readonly cause: number | null;
}

const mark = 'replace-';
const allCauses = 'all';

/** Names it, wherever the id of a proposal is taken. */
export function writeReplacementId({ cause, column, find, by }: Replacement): string {
  const texts = Buffer.from(JSON.stringify([column, find, by])).toString('base64url');
  return `${cause === null ? allCauses : writeCauseId(cause)}-${mark}${texts}`;
}

function readReplacement(name: string): Mend | null {
  if (!name.startsWith(mark) || name.length > MAX_MEND_ID_CHARS) return null;
  try {
    const texts: unknown = JSON.parse(Buffer.from(name.slice(mark.length), 'base64url').toString('utf8'));
    if (!Array.isArray(texts) || texts.length !== 3 || texts.some((text) => typeof text !== 'string'))
      return null;
    const [column, find, by] = texts as [string, string, string];
    const isShort = [find, by].every((text) => text.length <= MAX_REPLACEMENT_CHARS);
    return isShort ? replacementMend(column, find, by) : null;
  } catch {
    return null;
  }
}

function replacementMend(column: string, find: string, by: string): Mend {
  return {
    name: 'replace',
    sentence: 'replaced',
    codes: [],
    column,
    cells(raw, records, row) {
      const at = records.header.columns.indexOf(column);
      const cells = at === -1 ? null : filledCells(raw, records);
      const before = cells?.[at];
      if (cells === null || before === undefined) return null;
      const after = replaced(before, find, by.replaceAll('{row}', String(row)));
      return after === null ? null : cells.with(at, after);
    },
  };
}

/** Returns the cells for mending, with empty ones for those missing at the end; null for a record with too many cells. */
function filledCells(raw: Buffer, records: RefusedCsv): readonly string[] | null {
  const cells = records.texts(raw) ?? records.allCells(raw);
  const missing = records.header.columns.length - (cells?.length ?? 0);
  if (cells === null || missing < 0) return null;
  return [...cells, ...Array.from({ length: missing }, () => '')];
}

/** Returns null if nothing is replaced, or the result is too long. */
function replaced(before: string, find: string, by: string): string | null {
  if (find === '') return before === '' && by !== '' ? by : null;
  const found = before.split(find).length - 1;
  const length = before.length + found * (by.length - find.length);
  if (length > MAX_REJECT_RAW_BYTES) return null;
  const after = before.replaceAll(find, () => by);
  return after === before ? null : after;
}
