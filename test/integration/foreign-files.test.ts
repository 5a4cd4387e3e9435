import { describe, expect, test } from 'vitest';
import {
  acceptFile,
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
} from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

describe('events without a kind', () => {
  const calls =
    '{"type":"track","event":"Paid","userId":"ada","timestamp":"2026-03-04T05:06:07Z","name":"x"}\n';

  // proves: foreign-files
  test.each([
    ['with a mapped id', calls, { userId: 'user_id' }],
    ['with user_id', '{"user_id":"ada","event":"Paid","created_at":1772600767,"type":"track"}\n', {}],
    ['in a CSV', 'user_id,event,created_at,type\nada,Paid,2026-03-04,track\n', {}],
  ])(
    'events %s are refused and overwrite no profile, and with entity=users they are loaded as users',
    async (_, text, map) => {
      const environment = await newEnvironment(t.system);
      const admin = { ada: { company: null, metadata: { type: 'admin' } } };
      await runManually(await startManually(t.system, environment, '{"user_id":"ada","type":"admin"}\n'));
      await expect(acceptFile(t.system, environment, text, { map })).rejects.toMatchObject({
        problems: [{ code: 'unrecognised_columns' }],
      });
      expect((await readProfiles(t.system, environment)).users).toEqual(admin);
      await runManually(await startManually(t.system, environment, text, { map, entity: 'users' }));
      expect((await readProfiles(t.system, environment)).users).toMatchObject({
        ada: { metadata: { type: 'track', event: 'Paid' } },
      });
    },
  );
});
