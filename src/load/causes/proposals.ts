import { CAUSE_SAMPLES } from '../../domain/limits.ts';
import { type Reject, writeCauseId } from '../../domain/reject.ts';
import type { MendedRecord, Mending } from './mending.ts';
import { type Mend, mendsOf } from './mends.ts';
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
  const byResult = new Map<string, Trial>();
  for (const trial of trials) {
    const result = trial.mended.map(({ line }) => line.toString('latin1')).join('');
    if (!byResult.has(result)) byResult.set(result, trial);
  }
  return [...byResult.values()];
}

/** Returns true if the two mends make different records of one. */
function contradicts(trial: Trial, other: Trial): boolean {
  if (trial === other) return false;
  const lines = new Map(other.mended.map(({ reject, line }) => [reject.row, line]));
  return trial.mended.some(({ reject, line }) => lines.get(reject.row)?.equals(line) === false);
}
