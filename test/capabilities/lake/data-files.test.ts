import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WrittenFile } from '../../../src/capabilities/lake/file-store.ts';
import { IdFilter } from '../../../src/capabilities/lake/id-filter.ts';
import { LostLakeFile, readGroups } from '../../../src/capabilities/lake/read-events.ts';
import { valuesOf } from '../../../src/capabilities/lake/stored-events.ts';
import { StoredFileWriter } from '../../../src/export/write/attempt-files.ts';
import { ParquetFile } from '../../../src/export/write/parquet.ts';
import type { FileFacts } from '../../../src/export/write/split-files.ts';
import type { FileRef, FileStore } from '../../../src/files/file-store.ts';
import { mayHold } from './support/lake-filter.ts';

const request = { includeRemoved: false } as const;
const owner = { fields: [], openIds: () => new IdFilter(), onFile: async () => undefined };
const maxRows = 200;

interface Row {
  readonly id: string;
  readonly user: string;
  readonly company: string | null;
  readonly micros: number;
}

const anyId = fc.oneof(
  fc.constantFrom('a', 'user "1"', 'ö\\', '\u0002\n', '😀', 'x'.repeat(90), 'é'.repeat(40)),
  fc.string({ unit: 'binary', minLength: 1 }),
);
const anyRow: fc.Arbitrary<Row> = fc.record({
  ...{ id: anyId, user: anyId, company: fc.oneof(fc.constant(null), anyId) },
  micros: fc.integer({ min: 0, max: 2 ** 50 }),
});
const anyGroups = fc.array(fc.array(anyRow, { minLength: 1, maxLength: maxRows }), {
  ...{ minLength: 1, maxLength: 4 },
});

/** As COPY writes it. */
const textOf = ({ id, user, company, micros }: Row): Buffer => {
  const texts = [id, 'track', 'seen', user].map((text) => JSON.stringify(text));
  const values = [...texts, company === null ? '' : JSON.stringify(company), '"api"', micros, '{"n": 1}'];
  return Buffer.from(`${values.join('\u0002')}\n`);
};

interface Written {
  readonly files: FileStore;
  readonly file: WrittenFile;
  readonly facts: FileFacts;
  readonly bytes: Buffer;
}

async function write(rows: number, fill: (file: ParquetFile) => Promise<void>): Promise<Written> {
  const pieces: Buffer[] = [];
  const ref = 'stored' as FileRef;
  const writer = {
    ref,
    write: async (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)),
    commit: async () => ref,
    discard: async () => undefined,
  };
  const stored = new StoredFileWriter(writer, 'none');
  const file = new ParquetFile({ dataset: 'events', request, owner }, stored, maxRows);
  await fill(file);
  const facts = (await file.end()) as FileFacts;
  const written = { rows, ...(await stored.finish()) };
  const bytes = Buffer.concat(pieces);
  const readRange = async (_: FileRef, start: number, end: number) => bytes.subarray(start, end);
  return { files: { readRange } as Partial<FileStore> as FileStore, file: written, facts, bytes };
}

const writeRows = (groups: readonly (readonly Row[])[]) =>
  write(groups.flat().length, async (file) => {
    for (const group of groups) {
      for (const row of group) {
        const bytes = textOf(row);
        file.addRow(bytes, 0, bytes.length);
      }
      await file.endGroup();
    }
  });

async function textIn({ files, file }: Written, erasure?: Parameters<typeof valuesOf>[1]): Promise<string> {
  let text = '';
  for await (const group of readGroups(files, file)) text += (await valuesOf(group, erasure)).bytes;
  return text;
}

// proves: lake-erasure, lake-appends
test('a file of the lake gives back every value that PostgreSQL sent, and the ledger knows its ids and times', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, async (unordered) => {
      const groups = unordered.map((group) => group.toSorted((a, b) => a.micros - b.micros));
      const written = await writeRows(groups);
      const { facts } = written;
      const rows = groups.flat();
      expect(await textIn(written)).toBe(rows.map(textOf).join(''));
      for (const { user, company } of rows) {
        expect(mayHold(facts.filter, 'users', user)).toBe(true);
        if (company !== null) expect(mayHold(facts.filter, 'companies', company)).toBe(true);
      }
      expect(facts.firstMicros).toBe(groups[0]?.[0]?.micros);
      expect(facts.lastMicros).toBe(groups.at(-1)?.at(-1)?.micros);
      const { user } = rows[0] as Row;
      const kept = rows.filter((row) => row.user !== user);
      expect(await textIn(written, { entity: 'users', ids: new Set([user]) })).toBe(
        kept.map(textOf).join(''),
      );
      const freed = rows.map((row) => ({ ...row, company: row.company === user ? null : row.company }));
      expect(await textIn(written, { entity: 'companies', ids: new Set([user]) })).toBe(
        freed.map(textOf).join(''),
      );
    }),
    { numRuns: 60 },
  );
});

// proves: lake-erasure
test('a file into which the row groups of another are copied has the same bytes of rows and the same facts', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, async (groups) => {
      const first = await writeRows(groups);
      const copy = await write(first.file.rows, async (file) => {
        for await (const group of readGroups(first.files, first.file)) await file.addPacked(group);
      });
      expect(copy.facts).toEqual(first.facts);
      expect(await textIn(copy)).toBe(await textIn(first));
    }),
    { numRuns: 30 },
  );
});

// proves: lake-appends
test('a file of the lake in which any byte was changed is reported as damaged', async () => {
  const anyRows = fc.array(anyRow, { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(anyRows, fc.nat(), async (rows, at) => {
      const written = await writeRows([rows]);
      const place = at % written.bytes.length;
      written.bytes[place] = (written.bytes[place] as number) ^ 0x55;
      await expect(textIn(written)).rejects.toThrow(LostLakeFile);
    }),
    { numRuns: 100 },
  );
});
