import { CAUSE_SAMPLES } from '../../domain/limits.ts';
import type { Reject } from '../../domain/reject.ts';
import { createValueReader, type RefusedSource } from './mend.ts';
import type { Mending } from './mending.ts';
import { type Proposal, proposeMends } from './proposals.ts';

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
