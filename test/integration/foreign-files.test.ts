import { describe, expect, test } from 'vitest';
import {
  acceptFile,
  newEnvironment,
  readProfiles,
  runManually,
  startManually,
} from '../support/load-file.ts';
import { systemOfFile } from '../support/system.ts';

const t = await systemOfFile();

type Members = Readonly<Record<string, unknown>>;

const formats: Readonly<Record<string, (records: readonly Members[]) => string>> = {
  NDJSON: (records) => records.map((record) => `${JSON.stringify(record)}\n`).join(''),
  JSON: (records) => JSON.stringify({ results: records }, null, 2),
  CSV: (records) => {
    const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
    const cell = (value: unknown): string => {
      const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
      return `"${text.replaceAll('"', '""')}"`;
    };
    const rows = records.map((record) => columns.map((name) => cell(record[name])).join(','));
    return `${[columns.join(','), ...rows].join('\n')}\n`;
  },
};

describe('events that do not say what they are', () => {
  const calls = formats['NDJSON']?.([
    { type: 'track', event: 'Paid', userId: 'ada', timestamp: '2026-03-04T05:06:07Z', name: 'x' },
  ]) as string;

  // proves: foreign-files
  test.each([
    ['whose id is mapped', calls, { userId: 'user_id' }],
    ['that have our id', '{"user_id":"ada","event":"Paid","created_at":1772600767,"type":"track"}\n', {}],
    ['in a CSV', 'user_id,event,created_at,type\nada,Paid,2026-03-04,track\n', {}],
  ])(
    '%s are refused, and overwrite no profile; said to be users, they are loaded as such',
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
