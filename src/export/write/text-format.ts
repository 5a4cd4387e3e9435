import type { Dataset, ExportFormat } from '../../domain/export.ts';

export type TextFormat = Exclude<ExportFormat, 'parquet'>;

/**
 * What each row of a profile ends in: the two times that a load does not bring back. They have one length, so that they
 * can be cut off unread.
 */
const sampleTime = '2026-01-01T00:00:00.000000Z';
const tails: Readonly<Record<TextFormat, string>> = {
  ndjson: `,"first_seen_at":"${sampleTime}","last_seen_at":"${sampleTime}"}\n`,
  csv: `,${sampleTime},${sampleTime}\n`,
};

export function tailLength(format: TextFormat): number {
  return tails[format].length;
}

/** What the header of a CSV of profiles ends in. */
export const csvHeaderTail = ',first_seen_at,last_seen_at\n';

/** Events are told apart by their time: nothing of them is cut off, and they have no content hash of their own. */
export function hasContentHash(dataset: Dataset): boolean {
  return dataset !== 'events';
}
