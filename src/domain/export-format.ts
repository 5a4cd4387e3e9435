/*
 * The formats of exported files. To add one, add it here and write its `FormatWriter` in `src/export/write/formats.ts`;
 * it does not compile without. API, command line, schedules, console and the check of exported files follow this table.
 */

interface FormatFacts {
  /** The name as people write it. */
  readonly label: string;
  /** The files are compressed inside and need no gzip. */
  readonly isPackedInside: boolean;
  /** A load restores every value, as `export --everything` requires. */
  readonly isLossless: boolean;
  /** A spreadsheet opens it, and would run cells that begin like a formula. */
  readonly isForSpreadsheets: boolean;
}

const facts = {
  ndjson: { label: 'NDJSON', isPackedInside: false, isLossless: true, isForSpreadsheets: false },
  csv: { label: 'CSV', isPackedInside: false, isLossless: false, isForSpreadsheets: true },
  parquet: { label: 'Parquet', isPackedInside: true, isLossless: true, isForSpreadsheets: false },
  avro: { label: 'Avro', isPackedInside: true, isLossless: true, isForSpreadsheets: false },
} as const satisfies Readonly<Record<string, FormatFacts>>;

export type ExportFormat = keyof typeof facts;
export const exportFormats = Object.keys(facts) as readonly ExportFormat[];
export const exportFormatFacts: Readonly<Record<ExportFormat, FormatFacts>> = facts;

export function isExportFormat(name: string): name is ExportFormat {
  return Object.hasOwn(facts, name);
}
