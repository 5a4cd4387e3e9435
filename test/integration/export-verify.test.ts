import { appendFile, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import { type ExportFormat, exportFormatFacts, exportFormats } from '../../src/domain/export.ts';
import { verifyExport } from '../../src/export/manifest.ts';
import { exportAll, inDirectory } from '../support/files/export-files.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();
beforeAll(async () => {
  await sql`insert into users (environment_id, user_id, metadata)
    select ${t.environment.environmentId}::int, 'u' || i, jsonb_build_object('lines', E'a\n"' || i)
    from generate_series(1, 300) i`.execute(t.system.db);
  await t.system.db
    .insertInto('properties')
    .values({
      environment_id: t.environment.environmentId,
      entity: 'users',
      key: 'lines',
      display_name: 'Lines',
      data_type: 'string',
    })
    .execute();
});

interface Kind {
  readonly format: ExportFormat;
  readonly compression: 'none' | 'gzip';
}
const kinds = exportFormats.map(
  (format): Kind => ({ format, compression: format === 'ndjson' ? 'gzip' : 'none' }),
);
const textKinds = kinds.filter(({ format }) => !exportFormatFacts[format].isPackedInside);

/** Changes the files of an export. Returns the differences that `verifyExport` finds. */
async function afterChange(kind: Kind, change: (directory: string) => Promise<void>) {
  const written = await exportAll(t.system, t.environment.environmentId, { ...kind, splitBytes: 6000 });
  return inDirectory(t.system, written, async (directory) => {
    await change(directory);
    const { differences } = await verifyExport(directory);
    return differences.map(({ filename, problem }) => `${filename}: ${problem}`);
  });
}

describe('verifyExport', () => {
  test.each(kinds)(
    'verification of an unchanged export has no differences: $format, $compression',
    async (kind) => {
      const written = await exportAll(t.system, t.environment.environmentId, { ...kind, splitBytes: 6000 });
      await inDirectory(t.system, written, async (directory) => {
        const files = written.files.length - 1;
        expect(await verifyExport(directory)).toMatchObject({ differences: [], rows: 300, files });
      });
    },
  );

  test.each(textKinds)('verification reports a changed row: $format', async (kind) => {
    const name = `users.${kind.format}${kind.compression === 'gzip' ? '.gz' : ''}`;
    const differences = await afterChange(kind, async (directory) => {
      const path = join(directory, name);
      const bytes = await readFile(path);
      const text = (kind.compression === 'gzip' ? gunzipSync(bytes) : bytes).toString();
      const changed = Buffer.from(text.replace('u10', 'u1O'));
      const stored = kind.compression === 'gzip' ? gzipSync(changed) : changed;
      await writeFile(path, stored);
    });
    expect(differences).toEqual([expect.stringMatching(/ has another sha256: it was changed| bytes, not /)]);
  });

  test('verification reports a missing file, an extra file and a link', async () => {
    const differences = await afterChange({ format: 'csv', compression: 'none' }, async (directory) => {
      await rm(join(directory, 'events.csv'));
      await appendFile(join(directory, 'users-9999.csv'), 'x');
      await rename(join(directory, 'companies.csv'), join(directory, '..', 'companies-elsewhere.csv'));
      await symlink('../companies-elsewhere.csv', join(directory, 'companies.csv'));
      await rm(join(directory, '..', 'companies-elsewhere.csv'));
    });
    expect(differences.toSorted()).toEqual([
      'companies.csv: is no regular file',
      'events.csv: is missing',
      'users-9999.csv: is not in the manifest',
    ]);
  });

  test.each([
    '../users.csv',
    '/etc/passwd',
    'a/../users.csv',
    'users.csv/',
    '..',
    'manifest.json',
    'users.csv\u0000',
    'Users.csv',
    7,
  ])('verification refuses a manifest that names %j', async (filename) => {
    const refused = afterChange({ format: 'csv', compression: 'none' }, async (directory) => {
      const path = join(directory, 'manifest.json');
      const manifest = JSON.parse(await readFile(path, 'utf8'));
      manifest.files[0].filename = filename;
      await writeFile(path, JSON.stringify(manifest));
    });
    await expect(refused).rejects.toBeInstanceOf(InputError);
  });

  test.each(['', '[]', '{"files":[],"datasets":7}', '{"files":[{}],"datasets":[]}', '{'])(
    'verification refuses a file that is not a manifest: %j',
    async (text) => {
      const refused = afterChange({ format: 'csv', compression: 'none' }, (directory) =>
        writeFile(join(directory, 'manifest.json'), text),
      );
      await expect(refused).rejects.toBeInstanceOf(InputError);
    },
  );

  test('verification reports a missing manifest', async () => {
    const refused = afterChange({ format: 'csv', compression: 'none' }, (directory) =>
      rm(join(directory, 'manifest.json')),
    );
    await expect(refused).rejects.toThrow(/manifest.json cannot be read/);
  });
});
