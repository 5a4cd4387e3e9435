import { inputError } from '../../domain/errors.ts';
import { CAUSE_SAMPLES, MAX_REJECT_RAW_BYTES, MAX_REPLACEMENT_CHARS } from '../../domain/limits.ts';
import { type Reject, readCauseId, writeCauseId } from '../../domain/reject.ts';
import type { RefusedCsv } from '../rejects-text.ts';
import type { MendedRecord, Mending } from './mending.ts';
import { type Mend, mends, mendsOf } from './mends.ts';
import { createValueReader, type RefusedSource } from './reject-causes.ts';

/** Refused records of a cause, and what would mend them. */
export interface ExplainedCause {
  readonly samples: readonly CauseSample[];
  readonly proposals: readonly Proposal[];
}

export interface CauseSample {
  readonly reject: Reject;
  /** The text in the column at fault; `null` if the whole record is at fault, or the text cannot be found. */
  readonly value: string | null;
}

/** Tries mends on refused records of one cause. */
export async function explainCause(
  source: RefusedSource,
  mending: Mending,
  cause: number,
  tried: readonly Reject[],
): Promise<ExplainedCause> {
  const readValue = createValueReader(source);
  const samples = tried
    .slice(0, CAUSE_SAMPLES)
    .map((reject) => ({ reject, value: textOf(readValue(reject)) }));
  return { samples, proposals: await proposeMends(mending, cause, tried) };
}

function textOf(value: unknown): string | null {
  if (value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A mend that would make records of a cause acceptable. */
export interface Proposal {
  readonly id: string;
  readonly sentence: string;
  /** Records that it was tried on, and how many of them a load would take then. */
  readonly tried: number;
  readonly accepted: number;
  /** Another reading is as likely: a person has to know which is right. */
  readonly isAmbiguous: boolean;
  readonly samples: readonly MendedRecord[];
}

/** Proposes mends for records of this cause, tried on a sample, the most effective first. */
export async function proposeMends(
  mending: Mending,
  cause: number,
  rejects: readonly Reject[],
): Promise<Proposal[]> {
  const [first] = rejects;
  if (first === undefined) return [];
  const tried: Trial[] = [];
  for (const mend of mendsOf(first.code)) {
    const mended = await mending.mend(mend, rejects);
    if (mended.length > 0) tried.push({ mend, mended });
  }
  const most = Math.max(0, ...tried.map(({ mended }) => mended.length));
  // A mend that fixes all contradicts those that leave records behind.
  const offered = tried.filter(({ mended }) => most < rejects.length || mended.length === most);
  return withoutDoubles(offered)
    .sort((a, b) => b.mended.length - a.mended.length)
    .map((trial, _, all) => ({
      id: `${writeCauseId(cause)}-${trial.mend.name}`,
      sentence: trial.mend.sentence,
      tried: rejects.length,
      accepted: trial.mended.length,
      isAmbiguous: all.some((other) => contradicts(trial, other)),
      samples: trial.mended.slice(0, CAUSE_SAMPLES),
    }));
}

interface Trial {
  readonly mend: Mend;
  readonly mended: readonly MendedRecord[];
}

/** Keeps the first of mends with the same result. */
function withoutDoubles(trials: readonly Trial[]): Trial[] {
  return trials.filter(
    (trial, at) =>
      !trials
        .slice(0, at)
        .some(
          (other) =>
            other.mended.length === trial.mended.length &&
            other.mended.every(({ line }, index) => line.equals(trial.mended[index]?.line ?? noBytes)),
        ),
  );
}

/** Returns true if the two mends make different records of one. */
function contradicts(trial: Trial, other: Trial): boolean {
  if (trial === other) return false;
  const lines = new Map(other.mended.map(({ reject, line }) => [reject.row, line]));
  return trial.mended.some(({ reject, line }) => lines.get(reject.row)?.equals(line) === false);
}

const noBytes = Buffer.alloc(0);

/**
 * A mend and the cause that it is for, null for all of them: a proposal, or a replacement.
 * @throws InputError `invalid_field`.
 */
export function readProposalId(id: string): { readonly cause: number | null; readonly mend: Mend } {
  const replacement = readReplacementId(id);
  if (replacement !== null) return replacement;
  const at = id.indexOf('-');
  const cause = readCauseId(id.slice(0, Math.max(0, at)));
  const mend = mends.find(({ name }) => name === id.slice(at + 1));
  if (cause === null || mend === undefined) {
    throw inputError(
      'invalid_field',
      'There is no such proposal; ids come with the causes of the job',
      `apply: ${id.slice(0, 80)}`,
    );
  }
  return { cause, mend };
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
}

/** A replacement, and in which records: of a cause; null: in all. */
export interface ScopedReplacement extends Replacement {
  readonly cause: number | null;
}

const mark = '-replace-';
const allCauses = 'all';

/** Names it, wherever the id of a proposal is taken. */
export function writeReplacementId({ cause, column, find, by }: ScopedReplacement): string {
  const texts = Buffer.from(JSON.stringify([column, find, by])).toString('base64url');
  return `${cause === null ? allCauses : writeCauseId(cause)}${mark}${texts}`;
}

export function readReplacementId(id: string): { readonly cause: number | null; readonly mend: Mend } | null {
  const at = id.indexOf(mark);
  const scope = id.slice(0, Math.max(0, at));
  const cause = readCauseId(scope);
  const texts = at === -1 ? null : readTexts(id.slice(at + mark.length));
  if (texts === null || (cause === null && scope !== allCauses)) return null;
  const [column, find, by] = texts;
  return { cause, mend: replacementMend({ column, find, by }) };
}

function readTexts(encoded: string): [column: string, find: string, by: string] | null {
  if (encoded.length > longestId) return null;
  try {
    const texts: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'));
    if (!Array.isArray(texts) || texts.length !== 3 || texts.some((text) => typeof text !== 'string'))
      return null;
    const [, find, by] = texts;
    const isShort = [find, by].every((text) => text.length <= MAX_REPLACEMENT_CHARS);
    return isShort ? (texts as [string, string, string]) : null;
  } catch {
    return null;
  }
}

/** The longest id: a column name, which a record bounds, and two texts. */
const longestId = 8 * MAX_REJECT_RAW_BYTES;

export function replacementMend({ column, find, by }: Replacement): Mend {
  return {
    name: 'replace',
    sentence: 'replaced',
    codes: [],
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
