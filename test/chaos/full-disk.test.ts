import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { ended, expectExact, progressed, report } from '../support/oracles/exactness.ts';
import { expectEachOnce } from '../support/oracles/records-exactness.ts';
import { type House, inHouse, seconds } from '../support/servers/house.ts';
import { RecordSender } from '../support/servers/record-sender.ts';
import type { Api } from '../support/servers/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/servers/tmpfs.ts';
import { patienceMs, waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 60_000, seed: 5 });
const table = oracleOf(file);

// proves: disk-full
test('a service with a full disk reports it and continues when there is room, with nothing lost or doubled', async ({
  skip,
}) => {
  const disk = await mountSmallDisk(256 * 2 ** 20);
  if (typeof disk === 'string') return skip(disk);
  try {
    await inHouse((house) => fillDisk(house, disk), join(disk.path, 'data'));
  } finally {
    await disk.remove();
  }
});

async function expectFullDiskTold(house: House): Promise<void> {
  const status = await house.run('status');
  expect(status.code).toBe('exit code 1');
  expect(status.output).toMatch(/^failed +disk of \S+: The disk of \S+ is full: .* Make room: /m);
  expect(status.output).toMatch(/^disks\n.*is full.*\n.*\n.* yes\s*$/m);
  expect(status.output).toMatch(/import +(?:chunk \d+: )?could not /);
}

async function fillDisk(house: House, disk: SmallDisk): Promise<void> {
  const { sql } = house;
  const { api, key } = await house.start();
  const sender = new RecordSender(api.url, key, 4);
  const jobId = await api.upload(file.bytes);
  await progressed(sql, jobId, 0.1);
  // Connects in advance, because the database may refuse new connections when its disk is full.
  const writer = new pg.Client({ connectionString: await house.databaseUrl() });
  writer.on('error', () => undefined);
  await writer.connect();
  const fillLog = `select pg_logical_emit_message(false, 'test', repeat('x', 1000000)) from generate_series(1, $1)`;
  await writer.query(fillLog, [1]);
  const ballast = join(disk.path, 'ballast');
  await writeFile(ballast, Buffer.alloc(disk.bytes)).catch(() => undefined);

  // Usually, PostgreSQL first finds the disk full when it writes a page of a table. In this case,
  // PostgreSQL keeps running. If PostgreSQL first finds the disk full when it writes the WAL,
  // PostgreSQL ends.
  const finder = await waitFor('the disk to be found full', async () => {
    const answer = await (await api.fetch(`/v1/background_jobs/${jobId}`)).text();
    if (/No space left/.test(answer)) return 'by the load';
    return /no room left/.test(answer) && 'by the server';
  });
  const upload = { method: 'POST', body: file.bytes.toString(), headers: { 'content-type': 'text/csv' } };
  expect(await refusal(api, '/v1/imports', upload)).toMatch(
    /^disk of (the database|the files|the data directory): no room left$/,
  );
  if (finder === 'by the load') await expectFullDiskTold(house);

  // This statement fills the WAL. PostgreSQL finds the disk full there, ends, and cannot restart.
  await expect(writer.query(fillLog, [64])).rejects.toThrow();
  await api.process.prints(/no room left on the disk of/);
  const record = { method: 'POST', body: '{"user_id":"u"}', headers: { 'content-type': 'application/json' } };
  expect(await refusal(api, '/v1/identify', record)).toBe('disk of the data directory: no room left');
  expect(await house.run('status')).toMatchObject({
    code: 'exit code 1',
    output: expect.stringMatching(/The disk of .* is full/),
  });

  await rm(ballast);
  const freedAt = performance.now();
  await sender.untilServed(patienceMs);
  report(`disk full: records are accepted ${seconds(freedAt)} s after there was room`);
  await ended(sql, jobId);
  await sender.stop();
  await expectEachOnce(sql, sender);
  const drafts = (await readdir(join(house.dataDir, 'postgres', 'data'))).filter((name) =>
    name.startsWith('postmaster.pid.'),
  );
  expect(drafts, 'what could not be written').toEqual([]);
  for (const entity of ['users', 'companies'])
    await sql(`delete from sluice.${entity} where metadata ?| array['id', 'batch']`);
  await expectExact(sql, jobId, file, table);
}

/** Returns the reason given when a request is refused because the disk is full. */
async function refusal(api: Api, path: string, request: RequestInit): Promise<string> {
  return waitFor(`${path} to be refused for the disk`, async () => {
    const response = await api.fetch(path, request);
    const text = await response.text();
    if (response.status !== 503) throw new Error(`${response.status} ${text}`);
    expect(response.headers.get('retry-after')).not.toBeNull();
    const { errors } = JSON.parse(text) as { errors: { error_code: string; details: string }[] };
    expect(errors).toMatchObject([{ error_code: 'unavailable' }]);
    return errors[0]?.details ?? '';
  });
}
