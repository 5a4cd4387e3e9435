import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StoredFileWriter } from '../../../../src/export/write/attempt-files.ts';
import { ContentHash } from '../../../../src/export/write/content-hash.ts';
import { allHits } from '../../../../src/export/write/lake-hits.ts';
import { eventText } from '../../../../src/export/write/lake-rows.ts';
import { ParquetFile } from '../../../../src/export/write/parquet.ts';
import { ndjsonText } from '../../../../src/export/write/rows.ts';
import type { FileRef, FileStore } from '../../../../src/files/file-store.ts';
import { packSums } from '../../../../src/lake/group-sums.ts';
import { readGroups } from '../../../../src/lake/read-events.ts';
import type { LakeGroup } from '../../../../src/lake/row-group.ts';
import type { FileFacts } from '../../../../src/postgres/stores/lake-files.ts';
import { mayHold } from '../../../support/lake-filter.ts';

const request = { includeRemoved: false } as const;
const lake = { fields: [], onFile: async () => undefined };
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
  readonly file: { readonly ref: FileRef; readonly bytes: number; readonly rows: number };
  readonly facts: FileFacts;
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
  const file = new ParquetFile({ dataset: 'events', request, lake }, stored, maxRows);
  await fill(file);
  const facts = (await file.end()) as FileFacts;
  await stored.finish();
  const all = Buffer.concat(pieces);
  const readRange = async (_: FileRef, start: number, end: number) => all.subarray(start, end);
  return {
    files: { readRange } as Partial<FileStore> as FileStore,
    file: { ref, bytes: all.length, rows },
    facts,
  };
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

async function* groupsOf({ files, file, facts }: Written, areSumsKnown: boolean): AsyncGenerator<LakeGroup> {
  yield* readGroups(files, { ...file, sums: areSumsKnown ? facts.sums : null });
}

// proves: lake-erasure, lake-mirror
test('what the ledger keeps of a file, taken from the rows while it is written, is what a reader finds in the file', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, async (unordered) => {
      const groups = unordered.map((group) => group.toSorted((a, b) => a.micros - b.micros));
      const written = await writeRows(groups);
      const { facts } = written;
      const content = new ContentHash('events', ndjsonText);
      const sums: (Buffer | null)[] = [];
      const text = eventText();
      for await (const group of groupsOf(written, false)) {
        const own = new ContentHash('events', ndjsonText);
        own.add(text(allHits(group)));
        sums.push(own.sum());
        content.add(text(allHits(group)));
      }
      expect(facts.sums).toEqual(packSums(sums));
      expect(facts.content).toBe(content.digest());
      const rows = groups.flat();
      for (const { user, company } of rows) {
        expect(mayHold(facts.filter, 'users', user)).toBe(true);
        if (company !== null) expect(mayHold(facts.filter, 'companies', company)).toBe(true);
      }
      expect(facts.firstMicros).toBe(groups[0]?.[0]?.micros);
      expect(facts.lastMicros).toBe(groups.at(-1)?.at(-1)?.micros);
      const { user_id: users, company_id: companies } = facts.statistics;
      expect(companies?.nulls).toBe(rows.filter(({ company }) => company === null).length);
      const ids = rows.map(({ user }) => Buffer.from(user)).sort(Buffer.compare);
      const least = Buffer.from(users?.lower ?? '', 'base64');
      expect(least.equals((ids[0] as Buffer).subarray(0, least.length))).toBe(true);
      expect(least.length).toBeGreaterThan(Math.min(60, ids[0]?.length ?? 0) - 1);
      const greatest = ids.at(-1) as Buffer;
      expect(users?.upper).toBe(greatest.length > 64 ? undefined : greatest.toString('base64'));
    }),
    { numRuns: 60 },
  );
});

// proves: lake-erasure
test('a file into which the row groups of another are copied has the same facts, whether their sums are known or not', async () => {
  await fc.assert(
    fc.asyncProperty(anyGroups, fc.boolean(), async (groups, areSumsKnown) => {
      const first = await writeRows(groups);
      const toText = eventText();
      const copy = await write(first.file.rows, async (file) => {
        for await (const group of groupsOf(first, areSumsKnown))
          await file.addPacked({ group, text: () => toText(allHits(group)) });
      });
      // The footer has bounds of long texts that are cut.
      expect({ ...copy.facts, statistics: null }).toEqual({ ...first.facts, statistics: null });
      const boundsIn = ({ statistics: { user_id: users } }: FileFacts) =>
        [users?.lower, users?.upper].map((bound) => bound && Buffer.from(bound, 'base64'));
      const [[least, greatest], [lower, upper]] = [boundsIn(first.facts), boundsIn(copy.facts)];
      expect(Buffer.compare(lower as Buffer, least as Buffer)).toBeLessThanOrEqual(0);
      if (upper && greatest) expect(Buffer.compare(upper, greatest)).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 30 },
  );
});
