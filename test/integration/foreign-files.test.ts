import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { type Preset, presets, presetTitles } from '../../src/domain/load.ts';
import { readEvents } from '../support/events.ts';
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
const files = presets.flatMap((preset) => Object.keys(formats).map((format) => [preset, format] as const));

async function fileOf(preset: Preset, format: string): Promise<string> {
  const sample = new URL(`../../examples/presets/${preset}.ndjson`, import.meta.url);
  const lines = (await readFile(sample, 'utf8')).trim().split('\n');
  return formats[format]?.(lines.map((line) => JSON.parse(line) as Members)) ?? '';
}

const named = { CSV: 'f.csv', JSON: 'f.json', NDJSON: 'f.ndjson' } as Readonly<Record<string, string>>;

describe('an export file of another product', () => {
  // proves: foreign-files
  test.each(files)('of %s as %s is refused without its preset, and loads with it', async (preset, format) => {
    const environment = await newEnvironment(t.system);
    const text = await fileOf(preset, format);
    const filename = named[format] ?? '';
    await expect(acceptFile(t.system, environment, text, { filename })).rejects.toMatchObject({
      problems: [
        {
          code: 'unrecognised_columns',
          message: expect.stringContaining(
            `This is an export of ${presetTitles[preset]}: load it with preset=${preset}`,
          ),
        },
      ],
    });
    const whole = await startManually(t.system, environment, text, { filename, preset });
    expect(await runManually(whole)).toMatchObject({ status: 'completed' });
    expect((await readEvents(t.system, environment)).length).toBeGreaterThan(1);
    // A CSV has no types, so only which profiles and events there are is compared.
    const plain = await newEnvironment(t.system);
    await runManually(await startManually(t.system, plain, await fileOf(preset, 'NDJSON'), { preset }));
    const profiles = await readProfiles(t.system, environment);
    const expected = await readProfiles(t.system, plain);
    if (format === 'JSON') expect(profiles).toEqual(expected);
    expect(Object.keys(profiles.users)).toEqual(Object.keys(expected.users));
    expect(Object.keys(profiles.companies)).toEqual(Object.keys(expected.companies));
    const keyOf = ({ type, name, user, at }: Awaited<ReturnType<typeof readEvents>>[number]) => ({
      ...{ type, name, user, at },
    });
    const events = await readEvents(t.system, environment);
    expect(events.map(keyOf)).toEqual((await readEvents(t.system, plain)).map(keyOf));
  });
});

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
