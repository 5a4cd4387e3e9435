import { parse } from 'csv-parse/sync';
import { describe, expect, test } from 'vitest';
import type { Overview } from '../../../src/jobs/overview-api.ts';
import type { JobDetail } from '../../../src/load/api.ts';
import { keepCsv } from '../../support/files/uploads.ts';
import { form, openServer } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';

const { t, server } = await openServer({ worker: true, settings: { CHUNK_BYTES: '64k' } });

let serial = 0;
const addTenant = () => t.addEnvironment(`mends${++serial}`);

const options = `?${new URLSearchParams({ map: '{"Nr":"user_id"}', types: 'Seats=number' })}`;
const csv = { 'content-type': 'text/csv' };

const load = ({ key }: Tenant, query: string, body: string | FormData, headers = {}): Promise<JobDetail> =>
  server.load(body, { query, key, ...(typeof body === 'string' && { headers }) });

const show = async ({ key }: Tenant, jobId: string) =>
  (await server.json<JobDetail>(`/v1/background_jobs/${jobId}`, { key })).body;

const rejectsOf = async ({ key }: Tenant, jobId: string, format: 'csv' | 'ndjson') =>
  (await server.fetch(`/v1/background_jobs/${jobId}/rejects?format=${format}`, { key })).text();

const causes: readonly ((n: number) => string)[] = [
  () => ',pro,1',
  (n) => `u${n}`,
  (n) => `u${n},pro,1,more`,
  (n) => `u${n},"pro"x,1`,
  (n) => `${'a'.repeat(2_000)}${n},pro,1`,
  (n) => `u${n},pro,many`,
];

/** Returns a file with `count` records that are refused, and one record that is loaded. */
const fileOfRejects = (count: number) =>
  `Nr,Plan,Seats\ngood,pro,1\n${Array.from({ length: count }, (_, n) => `${causes[n % 6]?.(n)}\n`).join('')}`;

type Cells = Readonly<Record<string, string>>;

/** Returns the rows of a file of rejects after a person has corrected them. */
function corrected(file: string, select: (row: number) => boolean, seats = '7'): Cells[] {
  const rows = parse(file, { columns: true, relax_column_count: false }) as Cells[];
  return rows
    .filter(({ sluice_row }) => select(Number(sluice_row)))
    .map((cells) => ({ ...cells, Nr: `row-${cells['sluice_row']}`, Plan: 'free', Seats: seats }));
}

function toCsv(rows: readonly Cells[]): string {
  const line = (cells: readonly string[]) =>
    `${cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')}\n`;
  return line(Object.keys(rows[0] ?? {})) + rows.map((row) => line(Object.values(row))).join('');
}

const toNdjson = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

async function metadataOf({ key }: Tenant, userId: string) {
  const { body } = await server.json<{ metadata: object }>(`/v1/users/${userId}`, { key });
  return body.metadata;
}

describe('a corrected file of rejects', () => {
  // proves: mends
  test('a mend needs no repeated options on any route, and mends its job until no reject is left', async () => {
    const tenant = await addTenant();
    const parent = await load(tenant, options, fileOfRejects(240), csv);
    expect(parent).toMatchObject({
      counts: { read: 241, rejected: 240 },
      mends: null,
      rejects: { loaded_since: { count: 0, jobs: [] } },
    });
    expect(Object.keys(parent.rejects.by_code).length).toBeGreaterThanOrEqual(4);
    const file = await rejectsOf(tenant, parent.job_id, 'csv');

    const first = await load(tenant, '', toCsv(corrected(file, (row) => row % 3 === 0)), csv);
    const asJson = corrected(file, (row) => row % 3 === 1).map(({ sluice_row, ...row }) => ({
      ...row,
      sluice_row: Number(sluice_row),
      Seats: 7,
    }));
    const second = await load(tenant, '', form(toNdjson(asJson), { filename: 'corrected.ndjson' }));
    const third = toCsv(corrected(file, (row) => row % 3 === 2));
    const upload_id = await keepCsv(t.system, tenant.environment.environmentId, third);
    const last = await load(tenant, '', JSON.stringify({ upload_id }), {
      'content-type': 'application/json',
    });
    for (const job of [first, second, last])
      expect(job).toMatchObject({ status: 'completed', mends: parent.job_id, counts: { rejected: 0 } });

    const mended = await show(tenant, parent.job_id);
    expect(mended).toMatchObject({ counts: parent.counts, status: parent.status });
    expect({ ...mended.rejects.loaded_since, jobs: mended.rejects.loaded_since.jobs.toSorted() }).toEqual({
      count: 240,
      jobs: [first.job_id, second.job_id, last.job_id].toSorted(),
    });
    for (const id of ['row-2', 'row-3', 'row-4'])
      expect(await metadataOf(tenant, id)).toEqual({ Plan: 'free', Seats: 7 });
    const { body: overview } = await server.json<Overview>('/v1/overview', { key: tenant.key });
    expect([overview.needs, overview.unaccounted]).toEqual([[], 0]);
  });

  // proves: mends
  test('a mend may have rejects of its own, whose mend counts for the first job too', async () => {
    const tenant = await addTenant();
    const parent = await load(tenant, options, fileOfRejects(6), csv);
    const some = toCsv(corrected(await rejectsOf(tenant, parent.job_id, 'csv'), () => true, 'few'));
    const mend = await load(tenant, '', `${some + some.split('\n', 2)[1]?.replaceAll('few', '9')}\n`, csv);
    expect(mend).toMatchObject({ mends: parent.job_id, counts: { rejected: 6, read: 7 } });
    expect((await show(tenant, parent.job_id)).rejects.loaded_since).toMatchObject({ count: 1 });
    const again = corrected(await rejectsOf(tenant, mend.job_id, 'csv'), () => true);
    const last = await load(tenant, '', toCsv(again), csv);
    expect(last).toMatchObject({ mends: mend.job_id, counts: { rejected: 0 } });
    expect((await show(tenant, mend.job_id)).rejects.loaded_since).toMatchObject({ count: 6 });
    expect((await show(tenant, parent.job_id)).rejects.loaded_since).toMatchObject({ count: 6 });
  });

  test("a mend of an unknown job, or of another environment's job, is a file like any other", async () => {
    const tenant = await addTenant();
    const other = await addTenant();
    const parent = await load(tenant, options, fileOfRejects(6), csv);
    const rows = corrected(await rejectsOf(tenant, parent.job_id, 'csv'), () => true);
    const file = toCsv(rows);
    const absent = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';
    const jobs = [
      await load(other, options, file, csv),
      await load(tenant, options, file.replaceAll(parent.job_id, absent), csv),
      await load(tenant, options, file.replaceAll(parent.job_id, 'no uuid'), csv),
    ];
    for (const job of jobs) expect(job).toMatchObject({ mends: null, counts: { rejected: 0 } });
    expect(await metadataOf(other, 'row-2')).toEqual({ Plan: 'free', Seats: 7 });
    expect((await show(tenant, parent.job_id)).rejects.loaded_since).toEqual({ count: 0, jobs: [] });
  });

  test('an uncorrected file of rejects has the same records refused again, with one reason each', async () => {
    const tenant = await addTenant();
    const parent = await load(tenant, options, fileOfRejects(6), csv);
    for (const format of ['csv', 'ndjson'] as const) {
      const file = await rejectsOf(tenant, parent.job_id, format);
      const again = await load(tenant, '', form(file, { filename: `rejects.${format}` }));
      // Only columns of a CSV can have types.
      const rejected = format === 'csv' ? 6 : 5;
      expect(again).toMatchObject({ mends: parent.job_id, counts: { read: 6, rejected } });
      const lines = (await rejectsOf(tenant, again.job_id, 'ndjson')).trim().split('\n');
      for (const line of lines) {
        expect(line.match(/"sluice_job"/g)).toHaveLength(1);
        expect(JSON.parse(line)).toMatchObject({ sluice_job: again.job_id });
      }
    }
  });
});
