import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CHUNK_BYTES, CHUNK_RECORDS } from '../../../../src/base/limits.ts';
import type { ChunkRange } from '../../../../src/domain/load.ts';
import { plainMarks } from '../../../../src/formats/csv-dialect.ts';
import { createCsvScanner } from '../../../../src/formats/csv-scanner.ts';
import { sniffCsv } from '../../../../src/formats/csv-sniff.ts';
import { createLineScanner, type RecordScanner } from '../../../../src/formats/record-scanner.ts';
import { RecordIndex } from '../../../../src/load/receive/record-index.ts';
import { runs } from '../../../support/runs.ts';
import { feedScanner } from '../../formats/feed-scanner.ts';

function run(steps: Iterable<void>): void {
  for (const _ of steps);
}

const KiB = 1024;

interface IndexedRecord {
  readonly row: number;
  readonly line: number;
  readonly start: number;
  readonly text: string;
  readonly problem: string | null;
}

function readChunks(
  text: string,
  chunks: readonly ChunkRange[],
  createScanner: () => RecordScanner,
): IndexedRecord[] {
  return chunks.flatMap((chunk) => {
    const bytes = Buffer.from(text.slice(chunk.byteStart, chunk.byteEnd), 'latin1');
    const scanner = createScanner();
    const records: IndexedRecord[] = [];
    let { firstLine: line } = chunk;
    let at = 0;
    while (at < bytes.length) {
      const end = scanner.next(bytes, at, bytes.length, true);
      const start = chunk.byteStart + at;
      const row = chunk.firstRow + records.length;
      const record = {
        row,
        line,
        start,
        text: bytes.toString('latin1', at, scanner.contentEnd),
        problem: scanner.problem,
      };
      if (!scanner.blank) records.push(record);
      line += scanner.lines;
      at = end;
    }
    expect(records.length, 'rowCount').toBe(chunk.rowCount);
    expect(records[0]?.start, 'a chunk starts with a record').toBe(chunk.byteStart);
    expect(chunk.oversized, 'oversized').toBe(records[0]?.problem === 'record_too_large');
    return records;
  });
}

function readWhole(text: string, from: number, maxBytes: number): IndexedRecord[] {
  let line = 1 + (text.slice(0, from).match(/\r\n|\r|\n/g)?.length ?? 0);
  let row = 0;
  const records: IndexedRecord[] = [];
  const bytes = Buffer.from(text.slice(from), 'latin1');
  for (const record of feedScanner(createCsvScanner(plainMarks({ delimiter: ',' }), maxBytes), bytes, [
    bytes.length,
  ])) {
    const { problem, blank, lines } = record;
    const content = text.slice(from + record.start, from + record.contentEnd);
    if (!blank) records.push({ row: ++row, line, start: from + record.start, text: content, problem });
    line += lines;
  }
  return records;
}

function indexInPieces(index: RecordIndex, text: string, ends: readonly number[]): void {
  let start = 0;
  for (const end of ends) {
    run(index.add(Buffer.from(text.slice(start, end), 'latin1')));
    start = end;
  }
  run(index.end());
}

const body = fc
  .array(fc.constantFrom('a', 'bc', '"', '""', ',', '\n', '\r', '\r\n', '"a"', ',"', '",', 'a,b\n', '\n\n'), {
    maxLength: 60,
  })
  .map((parts) => parts.join(''));

const chunkBounds = fc.record({
  bytes: fc.integer({ min: 1, max: 40 }),
  records: fc.constantFrom(1, 2, 3, 1_000),
});

const pieces = (length: number) =>
  fc
    .array(fc.integer({ min: 1, max: Math.max(1, length) }), { maxLength: 12 })
    .map((at) => [...at.sort((a, b) => a - b), length]);

it('the chunks of a CSV have exactly its records, with their rows and lines', () => {
  const header = fc.constantFrom('h,i\n', '\n \r\nh,i\r', '"h\n1",i\r\n', 'h,i');
  const input = fc.tuple(header, body).chain(([head, records]) => {
    const text = /[\r\n]$/.test(head) ? head + records : head;
    const options = [chunkBounds, fc.integer({ min: 12, max: 30 })] as const;
    return fc.tuple(fc.constant(text), fc.constant(head), pieces(text.length), ...options);
  });
  fc.assert(
    fc.property(input, ([text, head, ends, bounds, maxBytes]) => {
      // If the header ends with CR, the body may begin with the LF that completes this CRLF.
      const from = head.endsWith('\r') && text[head.length] === '\n' ? head.length + 1 : head.length;
      const index = new RecordIndex('csv', bounds.bytes, 0, maxBytes, undefined, bounds.records);
      indexInPieces(index, text, ends);
      const expectedRecords = readWhole(text, from, maxBytes);
      expect(
        readChunks(text, index.chunks, () => createCsvScanner(plainMarks({ delimiter: ',' }), maxBytes)),
      ).toEqual(expectedRecords);
      expect(index.rows).toBe(expectedRecords.length);
      expect(Math.max(0, ...index.chunks.map((chunk) => chunk.rowCount))).toBeLessThanOrEqual(bounds.records);
      expect(index.header?.columns.length).toBe(2);
    }),
    { numRuns: runs(2000) },
  );
});

it('the chunks of NDJSON have exactly its lines', () => {
  const ndjson = fc
    .array(fc.constantFrom('{}', '{"a":1}', '\n', '\n', '\r\n', '\r', ' ', 'xxxxxxxxxxxx'), {
      maxLength: 50,
    })
    .map((parts) => parts.join(''));
  const input = ndjson.chain((text) => fc.tuple(fc.constant(text), pieces(text.length), chunkBounds));
  fc.assert(
    fc.property(input, ([text, ends, bounds]) => {
      const index = new RecordIndex('ndjson', bounds.bytes, 0, 20, undefined, bounds.records);
      indexInPieces(index, text, ends);
      const expectedLines = text
        .split('\n')
        .map((line, number, lines) => ({
          text: number < lines.length - 1 ? line.replace(/\r$/, '') : line,
          line: number + 1,
        }))
        .filter((line) => line.text.length > 20 || !/^[ \t\r]*$/.test(line.text));
      const records = readChunks(text, index.chunks, () => createLineScanner(20));
      expect(records.map((record) => ({ text: record.text, line: record.line }))).toEqual(expectedLines);
      expect(records.map((record) => record.row)).toEqual(expectedLines.map((_, row) => row + 1));
    }),
    { numRuns: runs(3000) },
  );
});

// proves: breathing
it('a chunk has at most the number of records that a worker reads, however short', () => {
  const text = `h,i\n${'x\n'.repeat(2 * CHUNK_RECORDS + 1)}`;
  const index = new RecordIndex('csv', CHUNK_BYTES, 0);
  indexInPieces(index, text, [text.length]);
  expect(index.chunks.map((chunk) => chunk.rowCount)).toEqual([CHUNK_RECORDS, CHUNK_RECORDS, 1]);
  expect(index.chunks[2]).toMatchObject({
    firstRow: 2 * CHUNK_RECORDS + 1,
    firstLine: 2 * CHUNK_RECORDS + 2,
  });
});

// proves: quoted-cells
it('a closed quoted cell of any length is one record, and an unclosed one is one line', () => {
  const lines = 6 * KiB;
  const cell = `${'x'.repeat(KiB - 1)}\n`.repeat(lines);
  for (const place of [`"${cell}"\nc\n`, `"a ""${cell}"\nc\n`]) {
    const index = new RecordIndex('csv', CHUNK_BYTES, 0);
    run(index.add(Buffer.from(`h\n${place}`)));
    run(index.end());
    expect(index.chunks.map((chunk) => [chunk.rowCount, chunk.oversized])).toEqual([
      [1, true],
      [1, false],
    ]);
    expect(index.chunks[1]).toMatchObject({ firstRow: 2, firstLine: lines + 3 });
  }
  const index = new RecordIndex('csv', CHUNK_BYTES, 0);
  run(index.add(Buffer.from(`h\n"${cell}c\n`)));
  run(index.end());
  expect(index.rows).toBe(lines + 1);
  expect(index.chunks.some((chunk) => chunk.oversized)).toBe(false);
});

it('an index that learns the dialect from outside gives the same header and chunks', () => {
  const file = Buffer.from(`sep=;\n\nReport\nuser_id;name\n${'u1;"Ada\nL"\n'.repeat(50)}`);
  const indexFile = (sniffedBytes: number) => {
    const index = new RecordIndex('csv', 80, 0, undefined, undefined, undefined, sniffedBytes);
    for (const byte of file) run(index.add(Buffer.of(byte)));
    run(index.end());
    const { sample } = index;
    if (sample !== null) {
      index.learn(sniffCsv(sample));
      run(index.end());
    }
    const { header, headerLine, notes, rows, chunks } = index;
    return { isElsewhere: sample !== null, result: { header, headerLine, notes, rows, chunks } };
  };
  const ownIndex = indexFile(Number.POSITIVE_INFINITY);
  const taughtIndex = indexFile(0);
  expect([ownIndex.isElsewhere, taughtIndex.isElsewhere, ownIndex.result.rows]).toEqual([false, true, 50]);
  expect(taughtIndex.result).toEqual(ownIndex.result);
});
