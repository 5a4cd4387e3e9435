import { inputError } from '../../domain/errors.ts';
import { CAUSE_SAMPLES } from '../../domain/limits.ts';
import { type Reject, type RejectCode, readCauseId, writeCauseId } from '../../domain/reject.ts';
import type { Mend } from './mend.ts';
import type { MendedRecord, Mending } from './mending.ts';
import { mendsOfCsv } from './mends-of-csv.ts';
import { mendsOfJson } from './mends-of-json.ts';
import { mendOfEncoding, mendsOfDates, mendsOfWords } from './mends-of-text.ts';
import { readReplacementId } from './replacement.ts';

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
  // A mend that fixes all contradicts those that leave records behind; a rule of writing goes before a guess.
  const isSure = tried.some(({ mend, mended }) => mend.isGuess !== true && mended.length === most);
  const offered = tried.filter(
    ({ mend, mended }) =>
      (most < rejects.length || mended.length === most) && !(isSure && mend.isGuess === true),
  );
  return withoutDoubles(offered)
    .sort((a, b) => b.mended.length - a.mended.length)
    .map((trial, _, all) => ({
      id: proposalId(cause, trial.mend),
      sentence: trial.mend.sentence,
      tried: rejects.length,
      accepted: trial.mended.length,
      isAmbiguous: trial.mend.isGuess === true || all.some((other) => contradicts(trial, other)),
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

function proposalId(cause: number, { name }: Mend): string {
  return `${writeCauseId(cause)}-${name}`;
}

/**
 * A mend and the cause that it is for, null for all of them: a proposal, or a replacement.
 * @throws InputError `invalid_field`.
 */
export function readProposalId(id: string): { readonly cause: number | null; readonly mend: Mend } {
  const replacement = readReplacementId(id);
  if (replacement !== null) return replacement;
  const at = id.indexOf('-');
  const cause = readCauseId(id.slice(0, Math.max(0, at)));
  const mend = findMend(id.slice(at + 1));
  if (cause === null || mend === null) {
    throw inputError(
      'invalid_field',
      'There is no such proposal; ids come with the causes of the job',
      `apply: ${id.slice(0, 80)}`,
    );
  }
  return { cause, mend };
}

/**
 * All mends there are. What is missing from a record (an id that nobody wrote) or is too much of it (too deep, too long) is not
 * mended, nor is what the database refuses.
 */
export const mends: readonly Mend[] = [
  ...mendsOfWords,
  ...mendsOfDates,
  ...mendsOfCsv,
  ...mendsOfJson,
  mendOfEncoding,
];

const byName: ReadonlyMap<string, Mend> = new Map(mends.map((mend) => [mend.name, mend]));

export function mendsOf(code: RejectCode): readonly Mend[] {
  return mends.filter((mend) => mend.codes.includes(code));
}

function findMend(name: string): Mend | null {
  return byName.get(name) ?? null;
}
