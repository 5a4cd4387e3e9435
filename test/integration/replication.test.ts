import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FileRef } from '../../src/files/file-store.ts';
import {
  type FileOptions,
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
} from '../support/files/load-file.ts';
import { randomFile } from '../support/files/random-files.ts';
import { runs } from '../support/runs.ts';
import { acceptExport, runExportTask } from '../support/servers/exports.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

/** Returns the files of the increment since a cursor, and the next cursor. */
async function increment(environmentId: number, since: string | null) {
  const work = await acceptExport(t.system, environmentId, {
    event_type: ['users', 'companies'],
    compression: 'none',
    include_removed: true,
    ...(since !== null && { since }),
  });
  await runExportTask(t.system, work.exportId);
  const { status, files, cursor } = await work.look();
  expect(status).toBe('completed');
  const contents = await Promise.all(
    files
      .filter(({ filename, rows }) => filename !== 'manifest.json' && rows > 0)
      .sort((a, b) => (a.filename > b.filename ? -1 : 1))
      .map(async ({ filename, ref, bytes }) => ({
        filename,
        content: await t.system.files.readRange(ref as FileRef, 0, bytes),
      })),
  );
  return { cursor, contents };
}

// proves: increments-removed
test('increments that are loaded one after another in any order of chunks keep a copy equal', async () => {
  const load = async (
    environmentId: number,
    text: string | Buffer,
    options: FileOptions,
    ranks: readonly number[],
  ) => {
    const started = await startManually(t.system, environmentId, text, { chunkBytes: 64, ...options });
    return runAtOnce(started, shuffled(started, ranks), 2);
  };
  const property = fc.asyncProperty(
    fc.array(fc.array(randomFile, { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 4,
    }),
    fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
    async (rounds, ranks) => {
      const source = await newEnvironment(t.system);
      const copy = await newEnvironment(t.system);
      let since: string | null = null;
      for (const files of rounds) {
        for (const file of files)
          await load(source, file.text, { format: file.format, source: file.source ?? {} }, ranks);
        const { cursor, contents } = await increment(source, since);
        for (const { filename, content } of contents) {
          const { tally } = await load(copy, content, { filename }, ranks);
          expect(tally.rejected).toBe(0);
        }
        since = cursor;
        expect(await readProfiles(t.system, copy)).toEqual(await readProfiles(t.system, source));
      }
    },
  );
  await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 90_000, numRuns: runs(6) });
});
