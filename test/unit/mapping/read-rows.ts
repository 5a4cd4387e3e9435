import type { LoadEntity } from '../../../src/domain/entity.ts';
import type { ChunkRange } from '../../../src/domain/load.ts';
import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import { planFile } from '../../../src/load/map/column-plan.ts';
import { CsvRows } from '../../../src/load/map/csv-rows.ts';
import { NdjsonRows } from '../../../src/load/map/ndjson-rows.ts';
import { type ChunkScope, Rows } from '../../../src/load/map/rows.ts';

export interface Reading extends ChunkScope {
  readonly entity?: LoadEntity;
  readonly map?: Readonly<Record<string, string>>;
  readonly rows?: Rows;
  /** True for NDJSON that the receiver has rewritten. Its records may contain implied profiles. */
  readonly isRewritten?: boolean;
}

export function wholeChunk(bytes: Uint8Array, firstLine = 1): ChunkRange {
  return { byteStart: 0, byteEnd: bytes.length, firstRow: 1, firstLine, rowCount: 0, oversized: false };
}

/** Reads the rows of a CSV whose header is line 1. */
export function readCsvRows(header: CsvHeader, text: string | Buffer, reading: Reading = {}): Rows {
  const { entity = 'auto', map = {}, rows = new Rows(), ...scope } = reading;
  const bytes = Buffer.from(text);
  rows.reset({ ...scope, bytes });
  Array.from(new CsvRows(header, planFile(header, map, entity), rows).read(wholeChunk(bytes, 2), bytes));
  return rows;
}

export function readNdjsonRows(text: string | Buffer, reading: Reading = {}): Rows {
  const { entity = 'auto', map = {}, rows = new Rows(), isRewritten = false, ...scope } = reading;
  const bytes = Buffer.from(text);
  rows.reset(scope);
  Array.from(new NdjsonRows({ entity, map, isRewritten }, rows).read(wholeChunk(bytes), bytes));
  return rows;
}
