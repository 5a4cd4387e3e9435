import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WrittenFile } from '../../../src/capabilities/lake/file-store.ts';
import { IdFilter } from '../../../src/capabilities/lake/id-filter.ts';
import { LostLakeFile, readGroups, valuesOf } from '../../../src/capabilities/lake/read-events.ts';
import { StoredFileWriter } from '../../../src/export/write/attempt-files.ts';
import { ParquetFile } from '../../../src/export/write/parquet.ts';
import type { FileFacts } from '../../../src/export/write/split-files.ts';
import type { FileRef, FileStore } from '../../../src/files/file-store.ts';
import { runs } from '../../support/runs.ts';
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
  id: anyId,
  user: anyId,
  company: fc.oneof(fc.constant(null), anyId),
  micros: fc.integer({ min: 0, max: 2 ** 50 }),
});
const anyGroups = fc.array(fc.array(anyRow, { minLength: 1, maxLength: maxRows }), {
  minLength: 1,
  maxLength: 4,
});

const textOf = ({ id, user, company, micros }: Row): Buffer => {
  const texts = [id, 'track', 'seen', user].map((text) => JSON.stringify(text));
  const values = [...texts, company === null ? '' : JSON.stringify(company), '"api"', micros, '{"n": 1}'];
  return Buffer.from(`${values.join('\u0002')}\n`);
};

interface LakeFile {
  readonly files: FileStore;
  readonly file: WrittenFile;
  readonly facts: FileFacts;
  readonly bytes: Buffer;
}

async function write(rows: number, fill: (file: ParquetFile) => Promise<void>): Promise<LakeFile> {
  const pieces: Buffer[] = [];
  const ref = 'stored' as FileRef;
  const writer = {
    ref,
    write: async (bytes: Uint8Array) => void pieces.push(Buffer.from(bytes)),
    commit: async () => ref,
    discard: async () => undefined,
  };
  const storedFile = new StoredFileWriter(writer, 'none');
  const file = new ParquetFile({ dataset: 'events', request, owner }, storedFile, maxRows);
  await fill(file);
  const facts = (await file.end()) as FileFacts;
  const writtenFile = { rows, ...(await storedFile.finish()) };
  const bytes = Buffer.concat(pieces);
  const readRange = async (_: FileRef, start: number, end: number) => bytes.subarray(start, end);
  return { files: { readRange } as Partial<FileStore> as FileStore, file: writtenFile, facts, bytes };
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

async function textIn({ files, file }: LakeFile, erasure?: Parameters<typeof valuesOf>[1]): Promise<string> {
  let text = '';
  for await (const group of readGroups(files, file)) text += (await valuesOf(group, erasure)).bytes;
  return text;
}

// proves: lake-erasure, lake-appends
test('a file of the lake returns every value, and its facts have its ids and times', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, async (unordered) => {
      const groups = unordered.map((group) => group.toSorted((a, b) => a.micros - b.micros));
      const lakeFile = await writeRows(groups);
      const { facts } = lakeFile;
      const rows = groups.flat();
      expect(await textIn(lakeFile)).toBe(rows.map(textOf).join(''));
      for (const { user, company } of rows) {
        expect(mayHold(facts.filter, 'users', user)).toBe(true);
        if (company !== null) expect(mayHold(facts.filter, 'companies', company)).toBe(true);
      }
      expect(facts.firstMicros).toBe(groups[0]?.[0]?.micros);
      expect(facts.lastMicros).toBe(groups.at(-1)?.at(-1)?.micros);
      const { user } = rows[0] as Row;
      const otherRows = rows.filter((row) => row.user !== user);
      expect(await textIn(lakeFile, { entity: 'users', ids: new Set([user]) })).toBe(
        otherRows.map(textOf).join(''),
      );
      const releasedRows = rows.map((row) => ({
        ...row,
        company: row.company === user ? null : row.company,
      }));
      expect(await textIn(lakeFile, { entity: 'companies', ids: new Set([user]) })).toBe(
        releasedRows.map(textOf).join(''),
      );
    }),
    { numRuns: runs(120) },
  );
});

// proves: lake-erasure
test('a file with copied row groups has the same rows and facts', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, async (groups) => {
      const original = await writeRows(groups);
      const copy = await write(original.file.rows, async (file) => {
        for await (const group of readGroups(original.files, original.file)) await file.addPacked(group);
      });
      expect(copy.facts).toEqual(original.facts);
      expect(await textIn(copy)).toBe(await textIn(original));
    }),
    { numRuns: runs(60) },
  );
});

// proves: lake-appends
test('a file of the lake with any changed byte is reported as damaged', async () => {
  const anyRows = fc.array(anyRow, { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(anyRows, fc.nat(), async (rows, at) => {
      const lakeFile = await writeRows([rows]);
      const place = at % lakeFile.bytes.length;
      lakeFile.bytes[place] = (lakeFile.bytes[place] as number) ^ 0x55;
      await expect(textIn(lakeFile)).rejects.toThrow(LostLakeFile);
    }),
    { numRuns: runs(100) },
  );
});
