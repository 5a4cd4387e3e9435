import { expect, test } from 'vitest';
import { CHUNK_BYTES, CHUNK_RECORDS } from '../../../src/base/limits.ts';
import type { StoredFormat } from '../../../src/domain/load.ts';
import type { FileRef } from '../../../src/files/file-store.ts';
import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import { createChunkReader, type ReadSource } from '../../../src/load/read-chunk.ts';
import { RecordIndex } from '../../../src/load/receive/record-index.ts';

function sourceOf(header: Partial<CsvHeader> | null, fields: Partial<ReadSource> = {}): ReadSource {
  return {
    jobId: 'job',
    environmentId: 1,
    entity: 'auto',
    acceptedAt: '2026-11-20T00:00:00.000000Z',
    fileRef: 'file' as FileRef,
    fileFormat: header === null ? 'ndjson' : 'csv',
    header: header === null ? null : { delimiter: ',', columns: [], ...header },
    columnMap: {},
    preset: null,
    recordKey: '',
    ...fields,
  };
}

async function countTurns(format: StoredFormat, text: string): Promise<number> {
  const bytes = Buffer.from(text);
  const index = new RecordIndex(format, CHUNK_BYTES, 0);
  for (const _ of index.add(bytes));
  for (const _ of index.end());
  const files = { readRange: async (_: unknown, start: number, end: number) => bytes.subarray(start, end) };
  const reader = createChunkReader(sourceOf(index.header), files, null);
  let turns = 0;
  let next: NodeJS.Immediate;
  const takeTurn = () => {
    turns++;
    next = setImmediate(takeTurn);
  };
  next = setImmediate(takeTurn);
  for (const chunk of index.chunks) await reader.read(chunk);
  clearImmediate(next);
  return turns;
}

// proves: breathing
test.each([
  ['lines that are not records of the CSV', 'csv', 'user_id,name\n', 'x\n'],
  ['rows of events without a name', 'csv', 'user_id,event_type,event_name,inserted_at\n', 'u,track,,\n'],
  ['lines that are not JSON', 'ndjson', '', 'x\n'],
] as const)('other work gets its turns while a worker reads %s', async (_, format, head, line) => {
  expect(await countTurns(format, head + line.repeat(2 * CHUNK_RECORDS))).toBeGreaterThan(0);
});
