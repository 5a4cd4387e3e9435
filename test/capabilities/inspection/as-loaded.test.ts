import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SHOWN_RECORDS } from '../../../src/base/limits.ts';
import {
  type Inspection,
  inspectFile,
  inspectorWith,
} from '../../../src/capabilities/inspection/inspect-file.ts';
import { renderReject } from '../../../src/load/render-load.ts';
import {
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
} from '../../support/files/load-file.ts';
import { randomFile } from '../../support/files/random-files.ts';
import type { Json, StoredProfile } from '../../support/oracles/serial-oracle.ts';
import { runs } from '../../support/runs.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const t = await systemOfFile();

const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };

/** Returns the users that result from the rows, applied in order to an empty table. */
function usersOf({ rows }: Inspection): Record<string, StoredProfile> {
  const users = new Map<string, { metadata: Record<string, Json>; company: string | null }>();
  for (const { event_type: kind, metadata, ...row } of rows) {
    const { user_id: id, company_id: company } = row as Readonly<Record<string, unknown>>;
    if (kind !== 'identify_user' || typeof id !== 'string') continue;
    const user = users.get(id) ?? { metadata: {}, company: null };
    users.set(id, user);
    for (const [name, value] of Object.entries(metadata)) {
      if (value === null) delete user.metadata[name];
      else user.metadata[name] = value as Json;
    }
    if (company !== undefined) user.company = company as string | null;
  }
  return Object.fromEntries(users);
}

// proves: inspection
test('an inspection shows the rows and rejects of the load that follows', async () => {
  const files = randomFile.filter(
    ({ records }) => records.length <= SHOWN_RECORDS && records.some((kind) => kind !== 'rejected'),
  );
  const property = fc.asyncProperty(files, async ({ text, format }) => {
    async function* source() {
      yield Buffer.from(text);
    }
    const options = { entity: 'auto', map: {}, preset: null } as const;
    const { signal } = new AbortController();
    const inspection = await inspectFile(
      t.system.files,
      source(),
      { format },
      options,
      limits,
      signal,
      inspectorWith(null),
    );
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, text, { format });
    const { tally } = await runManually(load);
    expect(usersOf(inspection)).toEqual((await readProfiles(t.system, environmentId)).users);
    expect(inspection).toMatchObject({ problem: null, whole_file: true, records: tally.read });
    expect(inspection.rejects.count).toBe(tally.rejected);
    expect(inspection.rows).toHaveLength(tally.read - tally.rejected);
    expect(inspection.rejects.items).toEqual(
      (await readRejects(t.system, load.jobId)).map((reject) => renderReject(reject)),
    );
  });
  await fc.assert(property, { numRuns: runs(40) });
});
