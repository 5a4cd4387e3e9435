import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import type { CsvHints } from '../../../src/formats/csv-sniff.ts';
import { CsvOpening } from '../../../src/load/receive/csv-opening.ts';

export function openCsv(
  bytes: Buffer,
  hints: Partial<CsvHints> = {},
): { readonly header: CsvHeader; readonly end: number; readonly notes: readonly string[] } {
  const opening = new CsvOpening({ source: {}, map: {}, ...hints });
  const { end } = opening.read(bytes, true);
  if (opening.header === null) throw new Error('no header');
  return { header: opening.header, end, notes: opening.notes };
}
