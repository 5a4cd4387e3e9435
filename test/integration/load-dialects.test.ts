import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import type { SourceOptions } from '../../src/domain/source.ts';
import { anyFile, type DialectFile, tellingFile } from '../support/files/dialect-files.ts';
import { newEnvironment, readProfiles, runManually, startManually } from '../support/files/load-file.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

/**
 * The number of attempts is the same on every machine. To search for rare cases (about one in ten
 * thousand attempts), increase this number and change the seed.
 */
const parameters = { numRuns: runs(120), endOnFailure: true } as const;

const chunkBytes = fc.constantFrom(1, 40, 200, 10_000);

/** Returns the result of a load, or the reason for its refusal. */
async function load({ bytes, map }: DialectFile, source: SourceOptions, chunk: number) {
  const environmentId = await newEnvironment(t.system);
  try {
    const manual = await startManually(t.system, environmentId, bytes, {
      filename: 'users.csv',
      map,
      source,
      chunkBytes: chunk,
    });
    const { tally, failure } = await runManually(manual);
    const { users } = await readProfiles(t.system, environmentId);
    const stored = Object.fromEntries(Object.entries(users).map(([id, { metadata }]) => [id, metadata]));
    return { tally, failure, stored, refused: undefined };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { refused: error.message };
  }
}

describe('a table written as CSV in any dialect', () => {
  // proves: csv-exact, csv-dialects
  test('a CSV in any dialect is loaded exactly if the options describe it', async () => {
    const property = fc.asyncProperty(anyFile, chunkBytes, async (file, chunk) => {
      const loaded = await load(file, file.source, chunk);
      const count = Object.keys(file.users).length;
      expect(loaded).toEqual({
        tally: expect.objectContaining({ read: count, inserted: count, rejected: 0 }),
        failure: null,
        stored: file.users,
        refused: undefined,
      });
    });
    await fc.assert(property, parameters);
  });

  // proves: csv-exact, csv-dialects
  test('a CSV in an undescribed dialect is loaded exactly or refused, and never as something else', async () => {
    const property = fc.asyncProperty(tellingFile, chunkBytes, async (file, chunk) => {
      const loaded = await load(file, {}, chunk);
      if (loaded.refused !== undefined) {
        expect(loaded.refused).not.toBe('');
        return;
      }
      for (const [id, metadata] of Object.entries(loaded.stored))
        expect({ [id]: metadata }).toEqual({ [id]: file.users[id] });
      const refused = Object.keys(file.users).length - Object.keys(loaded.stored).length;
      expect(loaded.tally.rejected).toBeGreaterThanOrEqual(refused === 0 ? 0 : 1);
    });
    await fc.assert(property, parameters);
  });
});
